"""The offline Fabric endpoint in a process of its own, with the harness's end of its control channel."""

import select
import subprocess
import tempfile

from fabric_bodies import SEED
from workload_process import ENV, PATIENCE, argv

from assisted_benchmark.kernel.clock import SystemClock
from assisted_benchmark.mutation.http_endpoint import HttpEndpoint
from assisted_benchmark.workloads.control import Control
from assisted_benchmark.workloads.fabric_api import bearer_of
from assisted_benchmark.workloads.fabric_api_oracle import read_fabric
from assisted_benchmark.workloads.process import CONTROL_ENV


class FabricProcess:
    """Started, configured and listening."""

    def __init__(self, *faults, seed=SEED):
        self.control = Control()
        self.stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self.process = subprocess.Popen(
            argv("fabric_api"),
            stdin=subprocess.DEVNULL,
            stderr=self.stderr,
            env=ENV | {CONTROL_ENV: str(self.control.child_fd)},
            pass_fds=[self.control.child_fd],
        )
        self.control.started()
        self.control.configure(seed=seed, faults=faults)
        self.bearer = bearer_of(seed)
        self.port = self.control.wait_port(PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.control.close()  # which ends it
        try:
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()
            self.stderr.close()

    def endpoint(self, **options):
        return HttpEndpoint(f"http://127.0.0.1:{self.port}", SystemClock(), **{"bearer": self.bearer} | options)

    def reading(self):
        self.control.poll()
        return read_fabric(self.control.received, self.control.events)

    def heard(self, name):
        """Wait until it tells of a request that asks for this; how many there were."""
        while name not in self.control.received:
            assert select.select([self.control._own], [], [], PATIENCE)[0]
            self.control.poll()
        return self.control.received[name]

    def end(self):
        """Wait for its own end, and hear the rest; its exit status."""
        status = self.process.wait(PATIENCE)
        self.control.finish(PATIENCE)
        return status

    def stderr_bytes(self):
        self.stderr.seek(0)
        return self.stderr.read()
