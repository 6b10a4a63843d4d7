"""Where services run: one module or package per runtime behind the protocol in `base`."""
