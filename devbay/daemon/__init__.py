"""devbayd: one process per home that owns the store, the engine clients, the proxy and the jobs."""
