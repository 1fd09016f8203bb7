# SPDX-License-Identifier: MIT
"""A virtual machine of Debian's kernel and this machine's programs, under QEMU's own emulation.

The kernel's package is downloaded by name and taken apart into the cache, never installed.  A small
initramfs mounts this machine's root, read-only, lays a disk over it that is gone with the boot, and
goes there.  Nothing of the guest can change anything here.
"""
import hashlib
import lzma
import os
import re
import select
import shlex
import shutil
import signal
import stat
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
QEMU = "qemu-system-x86_64"
WANTED = ["virtio_pci", "virtio_blk", "9pnet_virtio", "9p", "ext4", "crc32c_generic", "overlay", "dummy"]
MARK = "SANDBOX-VM "


class Lacking(Exception):
    """There can be no virtual machine here, and why."""


def output(*argv, **options):
    return subprocess.run(argv, capture_output=True, text=True, check=False, **options).stdout


def cache_folder():
    top = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(top, "sandbox-build")


def packages():
    """Name and version of the kernel's package and of busybox, as apt knows them."""
    if os.uname().machine != "x86_64" or not shutil.which(QEMU):
        raise Lacking(f"{QEMU} is not installed")
    for attempt in range(2):
        depends = output("apt-cache", "depends", "linux-image-amd64")
        kernel = re.search(r"Depends: (linux-image-[0-9]\S*-amd64)\b", depends)
        found = []
        for name in [kernel.group(1) if kernel else None, "busybox-static"]:
            policy = output("apt-cache", "policy", name) if name else ""
            version = re.search(r"Candidate: (\S+)", policy)
            if version and version.group(1) != "(none)":
                found.append((name, version.group(1)))
        if len(found) == 2:
            return found
        if attempt == 0 and os.getuid() == 0:
            subprocess.run(["apt-get", "-o", "DPkg::Lock::Timeout=300", "-q", "update"], check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    raise Lacking("apt offers no linux-image-amd64 and busybox-static")


# ---- The initramfs -------------------------------------------------------------------------------


def cpio_entry(name, mode, data=b""):
    head = "070701" + "".join(f"{n:08X}" for n in (
        0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0))
    entry = head.encode() + name.encode() + b"\0"
    entry += b"\0" * (-len(entry) % 4) + data
    return entry + b"\0" * (-len(data) % 4)


def cpio(files):
    """An archive of {path: (mode, bytes)}; directories are made above each file."""
    made, out = set(), b""
    for path, (mode, data) in files.items():
        parts = path.split("/")
        for i in range(1, len(parts)):
            folder = "/".join(parts[:i])
            if folder not in made:
                made.add(folder)
                out += cpio_entry(folder, stat.S_IFDIR | 0o755)
        out += cpio_entry(path, stat.S_IFREG | mode, data)
    return out + cpio_entry("TRAILER!!!", 0)


def read_module(path):
    with open(path, "rb") as f:
        data = f.read()
    return lzma.decompress(data) if path.endswith(".xz") else data


def modules(top):
    """The wanted modules and what they need, in an order in which they can be loaded."""
    place, loaded = {}, {}
    for folder, _, names in os.walk(top):
        for name in names:
            stem = re.sub(r"\.ko(\.xz)?$", "", name)
            if stem != name:
                place[stem.replace("-", "_")] = os.path.join(folder, name)

    def load(name):
        if name in loaded or name not in place:  # built in
            return
        data = read_module(place[name])
        needs = re.search(rb"\0depends=([^\0]*)\0", data)
        for other in (needs.group(1).decode().split(",") if needs else []):
            load(other.replace("-", "_"))
        loaded[name] = data

    for name in WANTED:
        load(name)
    return loaded


def build(folder, found):
    subprocess.run(["apt-get", "-q", "download"] + [f"{n}={v}" for n, v in found], cwd=folder,
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for name in os.listdir(folder):
        subprocess.run(["dpkg-deb", "-x", name, "x"], cwd=folder, check=True)
        os.unlink(os.path.join(folder, name))
    unpacked = os.path.join(folder, "x")
    boot = os.path.join(unpacked, "boot")
    kernel = next(n for n in os.listdir(boot) if n.startswith("vmlinuz-"))
    shutil.copy(os.path.join(boot, kernel), os.path.join(folder, "vmlinuz"))
    loaded = modules(os.path.join(unpacked, "lib", "modules"))
    files = {f"modules/{name}.ko": (0o644, data) for name, data in loaded.items()}
    files["modules/order"] = (0o644, "\n".join(f"{n}.ko" for n in loaded).encode())
    busybox = next(p for p in ("bin/busybox", "usr/bin/busybox")
                   if os.path.exists(os.path.join(unpacked, p)))
    with open(os.path.join(unpacked, busybox), "rb") as f:
        files["bin/busybox"] = (0o755, f.read())
    with open(os.path.join(HERE, "init"), "rb") as f:
        files["init"] = (0o755, f.read())
    with open(os.path.join(folder, "initrd"), "wb") as f:
        f.write(cpio(files))
    shutil.rmtree(unpacked)


def prepare():
    """The folder with vmlinuz and initrd; downloaded and built if the cache has none."""
    found = packages()
    key = hashlib.sha256(repr((found, WANTED)).encode())
    for name in ("init", "machine.py"):
        with open(os.path.join(HERE, name), "rb") as f:
            key.update(f.read())
    folder = os.path.join(cache_folder(), f"vm-{key.hexdigest()[:16]}")
    if os.path.exists(os.path.join(folder, "initrd")):
        return folder
    os.makedirs(cache_folder(), exist_ok=True)
    made = tempfile.mkdtemp(prefix="vm-new-", dir=cache_folder())
    try:
        build(made, found)
        os.chmod(made, 0o755)
        try:
            os.rename(made, folder)
        except OSError:  # another has been faster
            pass
    except (subprocess.CalledProcessError, OSError, StopIteration) as error:
        raise Lacking(f"the kernel cannot be fetched: {error}") from error
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return folder


# ---- A boot --------------------------------------------------------------------------------------


class Job:
    def __init__(self, user, seconds, command):
        self.user, self.seconds, self.command = user, seconds, command
        self.code, self.lines, self.took = None, [], 0.0


class Boot:
    """One boot of one machine: its jobs' exit codes and lines."""

    def __init__(self, name, settings, jobs, seconds, show=None):
        self.name, self.settings, self.jobs, self.seconds = name, settings, jobs, seconds
        self.show = show or (lambda line: None)
        self.faults, self.console, self.kernel, self.ended = [], [], "", False

    def job_files(self):
        settings = dict({"MACHINE": self.name, "CGROUPS": "delegated", "SYSCTLS": "", "INIT": ""}, **self.settings)
        machine = "".join(f"{k}={shlex.quote(v)}\n" for k, v in settings.items())
        jobs = "".join(f"job {j.user} {j.seconds} {shlex.quote(j.command)}\n" for j in self.jobs)
        return {"job/machine": (0o644, machine.encode()), "job/jobs": (0o644, jobs.encode())}

    def run(self, folder):
        with tempfile.TemporaryDirectory(prefix="sbvm.") as room:
            initrd, disk = os.path.join(room, "initrd"), os.path.join(room, "disk")
            with open(os.path.join(folder, "initrd"), "rb") as f, open(initrd, "wb") as out:
                base = f.read()
                out.write(base + b"\0" * (-len(base) % 512) + cpio(self.job_files()))
            with open(disk, "wb") as f:
                f.truncate(2 << 30)
            mkfs = shutil.which("mkfs.ext4", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
            subprocess.run([mkfs, "-q", "-F", "-O", "^has_journal", disk], check=True)
            self.boot(os.path.join(folder, "vmlinuz"), initrd, disk)
        return self

    def boot(self, kernel, initrd, disk):
        share = "local,security_model=none,readonly=on,multidevs=remap"
        argv = [QEMU, "-M", "pc", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2",
                "-m", "1024", "-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot",
                "-kernel", kernel, "-initrd", initrd,
                "-append", "console=ttyS0 quiet panic=-1 mitigations=off rdinit=/init",
                "-fsdev", f"{share},id=root,path=/", "-device", "virtio-9p-pci,fsdev=root,mount_tag=root",
                "-fsdev", f"{share},id=tree,path={ROOT}",
                "-device", "virtio-9p-pci,fsdev=tree,mount_tag=tree",
                "-drive", f"file={disk},format=raw,if=none,id=disk,cache=unsafe",
                "-device", "virtio-blk-pci,drive=disk"]
        end = time.monotonic() + self.seconds
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            self.listen(process.stdout.fileno(), end)
            if not self.ended:
                self.faults.append(f"not done after {self.seconds} s" if time.monotonic() >= end
                                   else "it ended before its jobs did")
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:  # it has ended by itself
                pass
            process.wait()
            process.stdout.close()

    def listen(self, fd, end):
        text = b""
        while time.monotonic() < end:
            ready, _, _ = select.select([fd], [], [], 1)
            if not ready:
                continue
            got = os.read(fd, 65536)
            if not got:
                return
            text += got
            *lines, text = text.split(b"\n")
            for line in lines:
                self.take(line.decode("utf-8", "replace").rstrip("\r"))
            if self.ended:
                return

    def take(self, line):
        at = line.find(MARK)
        current = next((j for j in self.jobs if j.code is None), None)
        if at < 0:
            self.console.append(line)
            if current is not None:
                current.lines.append(line)
            self.show(line)
            return
        word, _, rest = line[at + len(MARK):].partition(" ")
        if word == "up":
            self.kernel = rest
        elif word == "fault:":
            self.faults.append(rest)
        elif word == "begin" and current is not None:
            current.took = -time.monotonic()
        elif word == "end" and current is not None:
            current.code = int(rest)
            current.took += time.monotonic()
        elif word == "done":
            self.ended = True
