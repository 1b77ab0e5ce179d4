# SPDX-License-Identifier: Apache-2.0
"""containerd with NRI, driven through the CRI as kubelet does: the daemon follows pods, VM and runc, through restarts on both sides."""
# lab shapes: smt8
# lab timeout: 780
# lab alone: yes


from lab import check, kernel, product
from lab.cri import CriPod, restart_containerd, start_containerd
from lab.kubelet import CpuManager
from lab.product import NRI_SOCKET, Daemon
from lab.within import Times, outside

ROUNDS = 10


def vcpu_masks(pod: CriPod) -> list[str]:
    """Where the vCPUs of a VM pod may run."""
    return sorted(kernel.allowed(tid) for tid in kernel.threads(pod.pid) if kernel.comm(tid).startswith("CPU "))


def main() -> None:
    cri, kubelet, times = start_containerd(), CpuManager(), Times()
    with Daemon(nri_socket=NRI_SOCKET, log_level="debug") as daemon:
        check.eventually("the daemon hears containerd", lambda: product.is_heard("nri"), True)
        check.equal("the daemon hears kubelet", product.is_heard("kubelet"), True)

        check.step("a VM pod that shares, and an exclusive runc pod")
        shared = CriPod(cri, "shared", "vm")
        app = shared.run("app", kubelet.pool())
        times.expect("the shared pod's threads", lambda: outside(shared, "0-7"), [])
        runc = CriPod(cri, "runc")
        kubelet.admit(runc.uid, "app", "4-5")
        times.expect("admitted, before any container is there", lambda: outside(shared, "0-3,6-7"), [])
        runc.run("app", "4-5", quota=200000)
        times.expect("after the container's start", lambda: outside(shared, "0-3,6-7"), [])
        shared.update(app, kubelet.pool())
        check.equal("exclusive CPUs", product.owned(), "4-5")

        check.step("an exclusive VM pod, with one vCPU more than CPUs")
        vm = CriPod(cri, "exclusive", "vm")
        kubelet.admit(vm.uid, "app", "2-3")
        container = vm.run("app", "2-3", quota=200000)
        times.expect("its vCPUs", lambda: [mask for mask in vcpu_masks(vm) if mask.isdigit()], ["2", "3"])
        times.expect("the shared pod's threads", lambda: outside(shared, "0-1,6-7"), [])

        check.step("a container's CPUs move, again and again")
        for turn in range(ROUNDS):
            mine, pool = ("6-7", "0-3") if turn % 2 == 0 else ("2-3", "0-1,6-7")
            kubelet.admit(vm.uid, "app", mine)
            vm.update(container, mine, quota=200000)
            times.expect("its vCPUs", lambda here=mine: outside(vm, here), [])
            times.expect("the shared pod's threads", lambda here=pool: outside(shared, here), [])
            shared.update(app, kubelet.pool())
            times.expect("the shared pod, updated", lambda here=pool: outside(shared, here), [])

        check.step("the plugin is away while a container moves and a pod ends")
        daemon.stop()
        kubelet.admit(vm.uid, "app", "6-7")
        vm.update(container, "6-7", quota=200000)
        runc.remove()
        kubelet.forget(runc.uid)
        daemon.start()
        check.eventually("exclusive CPUs", product.owned, "6-7", seconds=5)
        check.eventually("the VM pod's threads outside its CPUs", lambda: outside(vm, "6-7"), [], seconds=5)

        check.step("containerd restarts; what is told afterwards is followed, and pods end whose end nobody tells")
        late = CriPod(cri, "late")
        kubelet.admit(late.uid, "app", "4")
        late.run("app", "4", quota=100000)
        restart_containerd(cri)
        check.eventually("the daemon hears containerd", lambda: product.is_heard("nri"), True)
        kubelet.admit(vm.uid, "app", "2-3")
        vm.update(container, "2-3", quota=200000)
        times.expect("the VM pod's threads", lambda: outside(vm, "2-3"), [])
        vm.remove()
        late.remove()
        kubelet.forget(vm.uid)
        kubelet.forget(late.uid)
        check.eventually("exclusive CPUs", product.owned, "", seconds=20)
        check.eventually("pods that the daemon knows", lambda: product.metric("kata_affinity_pods"), 1.0)
        check.equal("violations that verify finds", product.violations(), [])
        shared.remove()
        times.expect_bound()


main()
