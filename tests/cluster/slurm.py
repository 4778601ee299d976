"""A Slurm cluster of one node, this machine, for tests: munged, slurmctld and slurmd in a folder of its own."""
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel")
_PATIENCE = 60  # seconds, for each daemon

_CONF = """\
ClusterName=pmlab-test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0
MailProg=/bin/true
ReturnToService=2
KillWait=5
MinJobAge=3600
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={megabytes} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing():
    """The programs that are not installed; Debian has them in slurmctld, slurmd, slurm-client and munge."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    return [name for name in PROGRAMS if not shutil.which(name, path=path)]


def _free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Slurm:
    """Started by `with`, and ended by it. `environment`: for its clients, sbatch and others."""

    def __init__(self, folder, cpus, megabytes=16000):
        self.folder = pathlib.Path(folder)
        self.environment = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf"),
                            "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
        self._daemons = []
        self._cpus, self._megabytes = cpus, megabytes

    def _start(self, *words):
        with open(self.folder / f"{words[0]}.out", "wb") as log:
            self._daemons.append(subprocess.Popen(words, stdout=log, stderr=log, env=self.environment,
                                                  start_new_session=True))

    def _wait(self, what, is_so):
        deadline = time.monotonic() + _PATIENCE
        while not is_so():
            if time.monotonic() > deadline:
                logs = "\n".join(f"{p.name}: {p.read_text(errors='replace')[-2000:]}"
                                 for p in self.folder.glob("*.[lo][ou][gt]"))
                raise RuntimeError(f"no {what} within {_PATIENCE} s\n{logs}")
            time.sleep(0.1)

    def said(self, *words):
        return subprocess.run(words, capture_output=True, text=True, check=False, env=self.environment).stdout

    def __enter__(self):
        for name in ("state", "spool"):
            (self.folder / name).mkdir(parents=True)
        # munged refuses a socket or a key in a folder that others may write to.
        self.folder.chmod(0o755)
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        (self.folder / "slurm.conf").write_text(_CONF.format(
            host=socket.gethostname().split(".")[0], folder=self.folder, user=pwd.getpwuid(os.getuid()).pw_name,
            controller_port=_free_port(), node_port=_free_port(), cpus=self._cpus, megabytes=self._megabytes))
        try:
            self._start("munged", "--foreground", "--force", f"--socket={self.folder}/munge.socket",
                        f"--key-file={key}", f"--pid-file={self.folder}/munged.pid",
                        f"--log-file={self.folder}/munged.log", f"--seed-file={self.folder}/munged.seed")
            self._wait("munged", (self.folder / "munge.socket").exists)
            self._start("slurmctld", "-D", "-i")
            self._start("slurmd", "-D")
            self._wait("idle node", lambda: "idle" in self.said("sinfo", "--noheader", "--format=%T"))
        except BaseException:
            self.__exit__()
            raise
        return self

    def jobs(self):
        """{number: name} of those that run."""
        lines = self.said("squeue", "--noheader", "--states=RUNNING", "--format=%i %j").splitlines()
        return dict(line.split(None, 1) for line in lines if line)

    def __exit__(self, *_):
        self.said("scancel", "--full", "--user", pwd.getpwuid(os.getuid()).pw_name)
        for daemon in reversed(self._daemons):
            daemon.terminate()
        for daemon in reversed(self._daemons):
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
