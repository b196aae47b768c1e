# pod.sh TARDY DIRECTORY COMMAND...: as a container runtime makes a pod's environment, of this
# machine's own programs as the image: what an unprivileged container sees of /proc, /sys and /dev,
# the mounts that $MOUNTS names (path of the pod, path here, ro or rw), and the capabilities that
# $CAPABILITIES names, for setpriv. Within a mount and a cgroup namespace of its own.
set -e
tardy=$1
root=$2/root
shift 2
at() { mkdir -p "$root$1"; }
only_read() { mount -o remount,bind,ro "$1"; }

at ""
mount -t tmpfs none "$root"
for place in /*; do
    case $place in /proc | /sys | /dev | /run | /tmp | /host | /init | /job) continue ;; esac
    if [ -L "$place" ]; then ln -s "$(readlink "$place")" "$root$place"; elif [ -d "$place" ]; then
        at "$place"
        mount --bind "$place" "$root$place"
        only_read "$root$place"
    fi
done
at /image
touch "$root/image/tardy"
mount --bind "$tardy" "$root/image/tardy"

at /proc
mount -t proc proc "$root/proc"
for file in interrupts kcore keys latency_stats sched_debug timer_list timer_stats; do
    if [ -e "$root/proc/$file" ]; then mount --bind /dev/null "$root/proc/$file"; fi
done
for file in bus fs irq sys sysrq-trigger; do
    if [ -e "$root/proc/$file" ]; then
        mount --bind "$root/proc/$file" "$root/proc/$file"
        only_read "$root/proc/$file"
    fi
done
at /sys
mount -t sysfs -o ro sysfs "$root/sys"
for directory in "$root"/proc/acpi "$root"/proc/asound "$root"/proc/scsi "$root"/sys/firmware \
    "$root"/sys/devices/virtual/powercap "$root"/sys/devices/system/cpu/cpu*/thermal_throttle; do
    if [ -e "$directory" ]; then mount -t tmpfs -o ro none "$directory"; fi
done
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    mount -t cgroup2 -o ro cgroup2 "$root/sys/fs/cgroup"
elif [ -e /sys/fs/cgroup/cpu ]; then
    mount -t tmpfs none "$root/sys/fs/cgroup"
    at /sys/fs/cgroup/cpu
    mount -t cgroup -o ro,cpu cgroup "$root/sys/fs/cgroup/cpu"
fi
at /dev
mount -t tmpfs none "$root/dev"
# A container may open no other device, whatever is mounted.
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
at /dev/shm
mount -t tmpfs none "$root/dev/shm"

echo "$MOUNTS" | while read -r inside here mode; do
    if [ -z "$inside" ]; then continue; fi
    if [ -d "$here" ]; then [ -d "$root$inside" ] || at "$inside"; else
        at "${inside%/*}"
        touch "$root$inside"
    fi
    mount --bind "$here" "$root$inside"
    if [ "$mode" = ro ]; then only_read "$root$inside"; fi
done
mount -o remount,ro "$root"
exec env -i PATH=/image:/usr/bin:/bin:/usr/sbin $ENVIRONMENT chroot "$root" \
    setpriv --no-new-privs --inh-caps=-all --bounding-set="$CAPABILITIES" "$@"
