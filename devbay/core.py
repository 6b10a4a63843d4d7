"""The daemon's services put together: store, runtimes, proxy, bays, runs, and the private methods."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence

from devbay.bays.create import is_throwaway
from devbay.bays.gc import sweep_home
from devbay.bays.parts import Bay, Parts, now
from devbay.bays.repositories import Repositories
from devbay.bays.verbs import Bays, Caller
from devbay.daemon.methods import private_methods
from devbay.errors import DevbayError
from devbay.home import Home
from devbay.imports import load_engine
from devbay.logs import Logs
from devbay.runtimes.pool import RuntimePool
from devbay.security.scrub_set import ScrubSets
from devbay.security.scrubbers import Scrubbers
from devbay.sites.ports import PortRegistry
from devbay.sites.routes import Proxy
from devbay.sites.subnets import SubnetRegistry, range_from_config
from devbay.store import BayRecord, Store
from devbay.tasks.runs import Runs
from devbay.tools.registry import Call, PrivateHandler
from devbay.tools.verifying import Verifications, remove

logger = logging.getLogger(__name__)


class Core:
    """What the daemon hosts (`devbay.tools.registry.Services`). Starts and answers without any engine."""

    def __init__(self, home: Home) -> None:
        self.home = home
        store = Store(home.store)
        self.parts = Parts(
            home=home,
            store=store,
            proxy=Proxy(home, store),
            ports=PortRegistry(store),
            subnets=SubnetRegistry(store, range_from_config(home.config)),
            runtimes=RuntimePool(home, store, now),
            scrub=Scrubbers(ScrubSets(home.runtime_dir)),
        )
        self.runs = Runs(self.parts)
        self.bays = Bays(self.parts, self.runs.cancel_bay)
        self.logs = Logs(self.parts)
        self.repositories = Repositories(self.parts, self.bays)
        self.verifications = Verifications(self)
        self.private: Mapping[str, PrivateHandler] = private_methods(self)

    def start(self) -> None:
        """Take up what a killed daemon left, in the background: answers do not wait for an engine."""
        # listed before anybody can ask for another one
        left = [record for record in self.parts.store.bays() if is_throwaway(record)]
        threading.Thread(target=self._recover, args=(left,), name="recover", daemon=True).start()

    def close(self, *, stop_proxy: bool) -> None:
        """Let go of everything; what runs in containers goes on."""
        if stop_proxy:
            try:
                self.parts.proxy.stop()
            except DevbayError as error:
                logger.warning("the proxy was not stopped: %s", error.message)
        self.parts.runtimes.close()
        self.parts.store.close()

    def idle(self) -> bool:
        """True if there is no bay and nothing is going on."""
        return not self.parts.store.bays() and not self.busy()

    def busy(self) -> list[str]:
        """Names of runs and background work that a restart would interrupt."""
        works = [work.name for work in list(self.parts.works.values()) if not work.finished]
        return [*works, *self.verifications.going(), *(f"run {run}" for run in self.runs.going())]

    def caller(self, call: Call) -> Caller:
        """Who calls; from here on everything that a call may need is imported."""
        load_engine()
        return Caller(call.job, call.cwd, call.env)

    def opened(self, record: BayRecord, env: Mapping[str, str] | None = None) -> Bay:
        return Bay(self.parts, record, env or {})

    def _recover(self, throwaway: Sequence[BayRecord]) -> None:
        try:
            load_engine()
            for record in self.parts.store.bays():
                if record.includes and not self.parts.scrub.knows(record.id):
                    self.opened(record).know_includes()  # a reboot takes the private folder's files away
            self.runs.recover(self.opened)
            for record in throwaway:
                remove(self, record, {})
            sweep_home(self.parts)
            if any(record.wanted == "running" for record in self.parts.store.bays()):
                self.parts.proxy.ensure()
        except DevbayError as error:
            logger.warning("taking up what was left: %s", error.message)
        except Exception:
            logger.exception("taking up what was left failed")
