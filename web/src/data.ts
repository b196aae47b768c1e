// The page's data. Derived from the types in src/report/page.rs and src/run/; not to be edited:
// TARDY_WRITE_SCHEMAS=1 cargo test --lib report::schema

/** JSON of any shape: parameters and settings have no fixed one. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonMap = { [key: string]: Json };

/** The data of a report page: what the drawing code reads. docs/reference/page-data.md explains it. */
export type Page = {
  /** What a comparison in blocks has beside its figures and its matrix; absent on other pages. */
  ab: PageAb | null;
  /** One side's runs against another's; none where there is one run, and where runs cannot be compared. */
  comparisons: PageComparison[];
  /** Edges of the latency bins that histograms and heat maps of all runs share, ascending, ns; bin `i` holds `edges[i] <= latency < edges[i + 1]`. */
  latency_edges_ns: number[];
  /** RFC 3339, UTC. */
  made_at: string;
  /** Kernels of the lab beside each other, the cells of a plan or the blocks of a comparison, instead of runs; absent on a page of runs. */
  matrix: PageMatrix | null;
  /** See `PAGE_VERSION`. */
  page_version: number;
  /** The runs, in the order they were named. */
  runs: PageRun[];
  /** The tardy that made the page. */
  tardy_version: string;
  /** Runs of many nights, instead of single ones; absent on other pages. */
  trend: PageTrend | null;
  /** The words for what the data has names for. */
  words: Vocabulary;
};

/** A caveat of some blocks. */
export type AbCaveat = {
  /** Blocks of A that have it. */
  blocks_a: number;
  /** Blocks of B that have it. */
  blocks_b: number;
  /** As in `run.json`. */
  code: string;
  /** What it does to the verdict. */
  effect: Effect;
  /** What to do about it. */
  remedy: string;
  /** What was found in the first of them. */
  text: string;
};

/** When to look whether it is decided. */
export type AbLook = {
  /** After this number of pairs. */
  pairs: number;
  /** What was said then; null for a look that did not come. */
  verdict: AbVerdict | null;
};

/** How one side is measured. */
export type AbSideRecord = {
  /** Its own options, as typed. */
  options: string;
  /** The command that is run before each of its blocks; null for none. */
  prepare: string | null;
};

/** How far a comparison came. */
export type AbStatus = "running" | "complete" | "interrupted" | "invalid" | "failed";

/** What is said of B, compared with A. */
export type AbVerdict = "better" | "worse" | "same" | "inconclusive";

/** A setting of the machine as it was asked for. */
export type AskedSetting = {
  /** Its name, as in `--set`. */
  name: string;
  /** The value, as typed; `now` for the one that it has. */
  value: string;
};

/** What the user or the default wanted. */
export type AskedSetup = {
  /** CPUs to measure, as a list. */
  cpus: string;
  /** The request on /dev/cpu_dma_latency in us; null for none. */
  dma_latency_us: number | null;
  /** Frequency governor for the measured CPUs; null for no wish. */
  governor: string | null;
  /** CPUs for loads and recording threads, as a list; null for no wish. */
  housekeeping: string | null;
  /** Longest exit of an idle state that the user allows; null for no wish. In us. */
  max_idle_latency_us: number | null;
  /** Whether memory was to be locked. */
  memory_lock: boolean;
  /** Whether siblings of the measured CPUs were to be taken offline. */
  no_smt_sibling: boolean;
  /** Scheduling policy of the measured threads. */
  policy: string;
  /** Whether the user asked for that policy. */
  policy_explicit: boolean;
  /** Real-time priority of the first thread; 0 for other. */
  priority: number;
  /** Whether the user asked for that priority. */
  priority_explicit: boolean;
  /** Settings of the machine (`--set`). */
  settings: AskedSetting[];
  /** Whether everything else was to be kept off the measured CPUs. */
  shield: boolean;
  /** Timer slack of the measured threads. In ns. */
  timer_slack_ns: number;
};

/** The parameters of `attach`. */
export type AttachParameters = {
  /** How its threads were named: `pid`, `tid`, `comm`, `cgroup` or `command`. */
  by: string;
  /** What the cycles of threads of a name are to keep, where that has a separate deadline. */
  deadlines?: ThreadDeadline[];
  /** Only threads of this name; absent for all of them. */
  only?: string | null;
  /** The number, the name, the directory, or the words of the command. */
  target: string;
};

/** What became of a run of `attach`. */
export type AttachRecord = {
  /** The command that was started; absent if none was. */
  command: AttachedCommand | null;
  /** When the last of the threads had ended, ns from the start of the run; absent if the run ended first. */
  ended_ns: number | null;
  /** Threads that were measured for a part of the time, as others woke up more often and had the room from then on. */
  gave_way: number;
  /** Threads that were awake in all of the measured time, so that they have no row; or in more than the last half of it, in which they have no latency. Of one that has ended: of the time until then, which was 1 s or more, and a tenth of the measured time. */
  never_slept?: string[];
  /** Threads for which there was no room; nothing is known of them. */
  no_room: number;
  /** Of them those without a separate series, as they lived for less than a second, or others woke up more often: their wake-ups are in the series of their name. */
  pooled_only: number;
  /** For how many threads there was room at one time; older versions always had room for 511. */
  room: number;
  /** The threads of each name, and after them each thread that has a separate series. */
  rows: AttachedRow[];
  /** Threads that were measured, in all. */
  threads: number;
  /** The system calls in which event loops were seen to wait, if tardy can follow them. */
  wait_calls?: AttachedWaitCall[];
};

/** What a thread is given of `SCHED_DEADLINE` (sched(7)), ns. */
export type AttachedBudget = {
  /** From the start of a period until that time has been given. */
  deadline_ns: number;
  /** From one start to the next. */
  period_ns: number;
  /** Time on a CPU in each period. */
  runtime_ns: number;
};

/** A command that tardy started to look at it. */
export type AttachedCommand = {
  /** Its words. */
  argv: string[];
  /** How it ended: `exit 3`, `signal 9`; of one that could not be started, why. */
  ended: string | null;
  /** Whether tardy ended it, as the run was over. */
  ended_by_tardy: boolean;
  /** Its exit code; absent if a signal ended it. */
  exit_code: number | null;
};

/** Page faults in cycles that took longer than the deadline, as the kernel counts them. */
export type AttachedFaults = {
  /** Cycles with a page fault. */
  cycles: number;
  /** Page faults for which the page was read from a device. */
  major: number;
  /** Page faults for which nothing was read. */
  minor: number;
};

/** What the latency of an attached thread is. */
export type AttachedLatency = "lateness" | "dispatch";

/** Cycles of a thread, or of all of one name, that took longer than the deadline: their parts, summed, in ns. They sum to the responses of these cycles. */
export type AttachedOver = {
  /** How many cycles. */
  cycles: number;
  /** The deadline, ns: as asked for, or that of `SCHED_DEADLINE`. */
  deadline_ns: number;
  /** Page faults in it; absent in records of earlier versions. */
  faults?: AttachedFaults | null;
  /** From the hard expiry to the CPU. */
  late_ns: number;
  /** Ready but not running: preempted, or woken again and not switched in yet. */
  ready_ns: number;
  /** On a CPU; interrupts that came meanwhile are in it. */
  run_ns: number;
  /** What was not seen. */
  unseen_ns: number;
  /** Asleep in between. */
  wait_ns: number;
  /** What it slept for; absent in records of earlier versions. */
  waits?: AttachedWaits | null;
};

/** One thread, or all of one name. */
export type AttachedRow = {
  /** Of those: from sleeps for a time within the cycle of its period. They are part of it, and in no lateness. */
  asides: number;
  /** Asleep, up to each wake-up. */
  blocked: AttachedTimes;
  /** What the thread is given of `SCHED_DEADLINE`; absent for threads of another policy. */
  budget?: AttachedBudget | null;
  /** By interrupts and softirqs. */
  by_interrupt: number;
  /** By calls from other CPUs. */
  by_ipi: number;
  /** By the thread's timers, whose expiry is known. */
  by_own_timer: number;
  /** By other tasks. */
  by_task: number;
  /** Of them by timers. */
  by_timer: number;
  /** What begins its cycles. */
  cycle_begin?: CycleBegin;
  /** From each wake-up to the CPU; absent in records of earlier versions. */
  dispatch?: AttachedTimes | null;
  /** Of the others: they had the CPU before the hard expiry, within the slack. */
  in_slack: number;
  /** Of the expiries of its timer that came during such work: for how long that kept them waiting. Absent without any. */
  kept_waiting?: AttachedTimes | null;
  /** What the series has; absent while that is not known, as nothing woke the thread. */
  latency: AttachedLatency | null;
  /** From the hard expiry to the CPU, of the wake-ups by the thread's timers except those within a cycle; absent without any. */
  lateness?: AttachedTimes | null;
  /** Periods that are known to have had no expiry that woke the thread; absent if it has no period. */
  missed?: number | null;
  /** Of a thread whose timer begins its cycles, and that waits in one place for its timer and for others: its work for others, from each wake-up to its return to that wait. Absent without any. */
  other_work?: AttachedTimes | null;
  /** The cycles that took longer than the deadline; absent if it has none. */
  over?: AttachedOver | null;
  /** It had another period before: what it missed is counted by the period of the time, and `period_ns` is the last one. */
  period_changed?: boolean;
  /** From one programmed expiry to the next, ns; absent if they follow no period. */
  period_ns: number | null;
  /** That of its process; absent likewise. */
  pid: number | null;
  /** How the thread was scheduled in the measured time: `fifo 50`, `other`; where it was seen to change one after the other, `other, then fifo 50`; of all of one name where they have the same. Absent if that could not be read. */
  policy?: string | null;
  /** How often it lost its CPU while it wanted it. */
  preempted: number;
  /** Ready but not running, of each wake-up in which it lost its CPU. */
  ready: AttachedTimes;
  /** How long its cycles took; absent if that was not measured, or if it has none. */
  response?: AttachedTimes | null;
  /** On a CPU, of each wake-up. */
  run: AttachedTimes;
  /** The series: `name` or `name/1234`; in names `%2F`, `%20` and the like stand for slashes, spaces, commas and what cannot be printed. */
  series: string;
  /** Mean of hard less soft expiry of its timers, ns; absent without any. */
  slack_ns: number | null;
  /** How many threads there were of this name; absent for one thread. */
  threads: number | null;
  /** The kernel's number of the thread; absent for all of one name. */
  tid: number | null;
  /** How often something that it did was not seen: a wake-up, or that it had the CPU or left it. */
  unmatched: number;
  /** Unsure periods, neither met nor missed: something that the thread did was not seen, or it was late and armed its timer for more than one period ahead. Absent if it has no period. */
  unsure_periods?: number | null;
  /** Wake-ups after which it was seen to have the CPU. */
  wakeups: number;
};

/** A time that was measured again and again; ns, absent without a value. */
export type AttachedTimes = {
  /** How often. */
  count: number;
  /** Largest. */
  max: number | null;
  /** Mean. */
  mean: number | null;
  /** Median. */
  p50: number | null;
  /** 99th percentile. */
  p99: number | null;
};

/** A system call in which event loops wait. A loop returns to it without sleeping if something is ready; tardy sees that by a program at the call. */
export type AttachedWaitCall = {
  /** Its name: `epoll_wait`. */
  call: string;
  /** Why the program could not be loaded; absent if it was. */
  failed?: string | null;
};

/** What threads slept for within their cycles, summed, in ns: together `wait_ns`. */
export type AttachedWaits = {
  /** A futex: any mutex, condition variable or semaphore of the C library; absent if the kernel or the processor does not tell, and it is in `other_ns`. */
  futex_ns: number | null;
  /** A device, or a page. */
  io_ns: number;
  /** Anything else: the kernel does not say what. */
  other_ns: number;
  /** A mutex with priority inheritance; absent likewise. */
  pi_mutex_ns: number | null;
};

/** The parameters of `audio`. */
export type AudioParameters = {
  /** The CPU of the thread that is called. */
  cpu: number;
  /** Frames of a cycle. */
  frames: number;
  /** From one cycle to the next by these two, ns, rounded down. */
  interval_ns: number;
  /** Frames of a second. */
  rate_hz: number;
  /** The name of the JACK server; absent for the default one. */
  server: string | null;
};

/** The wake-ups of one band, and what they were blamed on. */
export type Band = {
  /** How much of that time was blamed, 0 to 1, if only on `unexplained`. */
  blamed_share: number;
  /** What it was blamed on, largest first. */
  causes: CauseInBand[];
  /** Latencies above this, ns; of the ten worst, from this. */
  from: number;
  /** `p99`: all above it; `worst`: the ten worst; `late`: responses of attached threads over the deadline, which come first, and which no other band has. */
  name: string;
  /** Their latencies together, ns. */
  ns: number;
  /** The largest latency of the run, ns. */
  to: number;
  /** Wake-ups in it. */
  wakeups: number;
};

/** What the samples of a band were blamed on, A beside B. All times are means per sample of the band, in ns; of several runs of a side the mean of theirs. */
export type BandDifference = {
  /** Their mean latency in A. */
  a_ns: number;
  /** The same in B. */
  b_ns: number;
  /** `p99`: the samples above each side's own 99th percentile. */
  band: string;
  /** How much of the time of A was blamed, if only on `unexplained`, 0 to 1. */
  blamed_a: number;
  /** The same of B. */
  blamed_b: number;
  /** Where the difference comes from, the largest first. What was not blamed at all is missing. */
  causes: CauseDifference[];
};

/** The parameters of `bandwidth`. */
export type BandwidthParameters = {
  /** The CPU of the process that measures, and of all that it switches to. */
  cpu: number;
  /** Where the file is that is read; absent if no figure needs one. */
  directory: string | null;
  /** The CPU of the senders of pipes and sockets. */
  far_cpu: number;
  /** What is measured, in this order: `pipe/64KiB`, `fork`, ... */
  figures: string[];
};

/** What the name of a cause rests on. */
export type Basis = "measured" | "inferred" | "none";

/** One thread that waited for another one, or all of its name. */
export type BetweenThreads = {
  /** How long together, ns. */
  ns: number;
  /** On what: `CPU`, which the other one had; a lock with its address, where that is known; `futex`, `I/O`; `wake-up` if all that is known is who ended the wait. */
  on: string;
  /** Who kept the one that was waited for from the CPU meanwhile, longest first. */
  preempted_by: HolderPreempted[];
  /** In how many late cycles at least, or of threads without a deadline late wake-ups, of those that were analysed. */
  times: number;
  /** Who waited. */
  who: string;
  /** For whom: the task that had what it wanted, or woke it. */
  whom: string;
};

/** What made a wake-up late. The order is that of tables. */
export type Cause = "irqs_off" | "hardirq" | "softirq" | "thread" | "nonpreemptible" | "lock" | "idle_exit" | "migration" | "throttled" | "page_fault" | "own_work" | "wait" | "stopped" | "host" | "hardware" | "tracing" | "unexplained";

/** One cause's part of both. */
export type CauseDifference = {
  /** What it had of a sample's latency in A, ns. */
  a_ns: number;
  /** The same in B. */
  b_ns: number;
  /** What kind. */
  cause: Cause;
  /** Which one. */
  name: string;
};

/** A cause's part in a band. */
export type CauseInBand = {
  /** What kind. */
  cause: Cause;
  /** The share of its time that is inferred rather than measured, 0 to 1. */
  inferred: number;
  /** Which one. */
  name: string;
  /** Its part of the band's time, ns. */
  ns: number;
  /** The same by series, largest first. */
  series: SeriesShare[];
  /** Its share of the time that was blamed, 0 to 1. */
  share: number;
};

/** A caveat of a run, as `run.json` keeps it. */
export type Caveat = {
  /** Stable name, explained in `docs/reference/caveats.md`. */
  code: string;
  /** What it does to the verdict. */
  effect: Effect;
  /** What to do about it. */
  remedy: string;
  /** What was found, with its figures. */
  text: string;
  /** The values that the text is made of, by name; absent in runs of older versions. */
  values: JsonMap;
};

/** What the ten worst wake-ups of each run of a cell were spent on. */
export type CellCause = {
  /** What kind. */
  cause: Cause;
  /** Which one: of what kept the CPU in the kernel, the function. */
  name: string;
  /** Its share of their time, 0 to 1. */
  share: number;
};

/** What came of a cell. */
export type CellStatus = "pending" | "measured" | "failed";

/** How the remote endpoint's clock compares with this machine's; of received packets, how that of the NIC which stamped them does. */
export type ClockRecord = {
  /** By how much the offset grows, parts per billion. */
  drift_ppb: number;
  /** Exchanges that were compared. */
  exchanges: number;
  /** The clock of the remote endpoint minus that of the local endpoint, at the middle of the run, ns. */
  offset_ns: number;
  /** The shortest round trip among them, ns. */
  shortest_round_trip_ns: number;
  /** The true offset lies within this distance of it, ns: half the shortest round trip, and what the clocks drifted. */
  uncertainty_ns: number;
};

/** One kernel. */
export type Column = {
  /** SHA-256 of its image; empty for a machine's own. */
  hash: string;
  /** Whether it is another kernel's repetition with other padding of the command line. */
  is_control: boolean;
  /** As in `LabFacts::mode`. */
  mode: string;
  /** As it was asked for; with the beginning of its hash where two have one name. */
  name: string;
  /** The preemption model: `voluntary`, `rt`, ... */
  preemption: string;
  /** `uname -r` */
  release: string;
};

/** One figure of B, compared with A. */
export type ComparedFigureRow = {
  /** The figure of A; of several blocks or runs their geometric mean. Of a share of few samples half a sample more than there were, as none has no logarithm, but for the missed periods of runs. */
  a: number;
  /** Of a percentile for which the blocks are too short: `a` and `b` are the shares of samples above this latency, ns. Otherwise null. */
  above_ns: number | null;
  /** That of B. */
  b: number;
  /** Which: p50, p90, p99, p99.9, p99.99, max or missed. */
  figure: string;
  /** The share by which equal sides would differ, in 5% of such comparisons by more; null where nothing tells. */
  floor: number | null;
  /** Upper end of the ratio's interval; null if it has none. */
  high: number | null;
  /** Lower end of the ratio's interval; null if it has none. */
  low: number | null;
  /** Whether B is better where it has less. */
  lower_is_better: boolean;
  /** Differences below this share are called the same, 0.05 for 5%: what was asked for, or the floor where that is higher. */
  margin: number;
  /** Pairs that it uses; 0 if one run is compared with one other. */
  pairs: number;
  /** Pairs that it would take to decide, if mean and spread stay as they are; null where it is decided, where it would take more than 100,000, and where nothing tells. */
  pairs_needed: number | null;
  /** B / A. */
  ratio: number;
  /** The series; null for all series together. */
  series: string | null;
  /** What `a` and `b` are. */
  unit: ComparedUnit;
  /** What follows. */
  verdict: AbVerdict;
};

/** What the values of a compared figure are. */
export type ComparedUnit = "ns" | "share";

/** The conditions of a run, as they were found during the run. */
export type ConditionsRecord = {
  /** The clock source, and those that came after it. */
  clock_sources: string[];
  /** How long interrupts (`interrupts.csv`, `nmis`) and the averages of the machine were counted, ns: from the end of the warm-up to the end of the last loop. Absent if the warm-up was not over, and in older runs, which counted interrupts from before the warm-up. */
  counted_ns: number | null;
  /** One entry a measured CPU. */
  cpus: CpuRecord[];
  /** What other programs used; absent if unknown, and in older runs. */
  foreign?: ForeignRecord | null;
  /** Bytes of locked memory at the end; absent if unknown. */
  locked_bytes: number | null;
  /** How often policy, priority and CPUs of the measured threads were asked for. */
  looks: number;
  /** Whether the kernel stopped real-time tasks in favor of others; absent if unknown: where the log cannot be read or has lost its beginning, had it before, or where this kernel never logs it. Older runs have false there. */
  rt_throttled: boolean | null;
  /** System management interrupts; absent if nothing counts them. */
  smis: number | null;
  /** Time suspended meanwhile, ns. */
  suspended_ns: number;
  /** One entry a series: what its thread used between its first and its last turn. */
  threads: ThreadUse[];
};

/** One option. */
export type ConfigRow = {
  /** Its name. */
  option: string;
  /** Its value in each kernel of `ConfigTable::kernels`; absent if it is not set. */
  values: (string | null)[];
};

/** Options that are not the same in all kernels. */
export type ConfigTable = {
  /** The kernels whose configuration is known. */
  kernels: string[];
  /** How many other options differ. */
  others: number;
  /** What matters to latency. */
  rows: ConfigRow[];
};

/** How busy one CPU was. */
export type CpuBusy = {
  /** Share of time not idle, 0 to 1, one per interval of `MachineTrack`. */
  busy: number[];
  /** Its number. */
  cpu: number;
};

/** Where a CPU sits. */
export type CpuPlace = {
  /** Core within the package; two CPUs of one core are hardware threads. */
  core: number;
  /** Its number. */
  cpu: number;
  /** Physical package. */
  package: number;
};

/** What became of a measured CPU. */
export type CpuRecord = {
  /** Its number. */
  cpu: number;
  /** Times its frequency was changed; absent if nobody counts. */
  frequency_changes: number | null;
  /** Its frequency before and after; absent if it cannot be read. */
  frequency_khz: [number, number] | null;
  /** Its frequency governor; absent without one. */
  governor: string | null;
  /** Non-maskable interrupts; absent if nobody counts. */
  nmis: number | null;
  /** Times it was slowed down because of heat; absent if nobody counts. */
  throttles: number | null;
};

/** What one CPU's time went to, as shares from 0 to 1. */
export type CpuUse = {
  /** Not idle. */
  busy: number;
  /** Its number. */
  cpu: number;
  /** Taken away by the hypervisor; part of `busy`. */
  steal: number;
};

/** What begins a cycle of an attached thread. */
export type CycleBegin = "timer" | "wake_up";

/** What a caveat does to the run. The order is that of severity. */
export type Effect = "informs" | "weakens" | "invalidates";

/** One end of the way. */
export type EndRecord = {
  /** Its address, where it has one. */
  address: string | null;
  /** The CPU it runs on, where this tardy arranged that. */
  cpu: number | null;
  /** `near`, `far`, `far2`. */
  name: string;
  /** `thread`, `process`, `machine` (an echo on another one, or in another namespace) or `foreign` (another program). */
  place: string;
  /** `fifo 90`, where this tardy arranged that. */
  policy: string | null;
  /** Bytes that its socket holds unread; absent if it has no socket. */
  receive_buffer_bytes: number | null;
  /** Bytes that its socket holds unsent. */
  send_buffer_bytes: number | null;
  /** Its version of tardy, where it is an echo. */
  version: string | null;
  /** How it waits for messages: `sleep`, `spin`, ...; absent if it cannot be chosen. */
  wait: string | null;
};

/** A fact that differs between runs. */
export type FactDifference = {
  /** What the runs of A say, each different one once. */
  a: string[];
  /** What those of B say. */
  b: string[];
  /** Which: `kernel`, `policy`. */
  fact: string;
};

/** Facts of the machine and of the program that measured. What could not be read is absent. */
export type Facts = {
  /** `uname -m` */
  architecture: string;
  /** The kernel's id of this boot. */
  boot_id: string | null;
  /** Current clock source: `tsc`, `kvm-clock`, ... */
  clock_source: string | null;
  /** Model name of the first CPU. */
  cpu_model: string | null;
  /** CPUs that tardy was allowed to use. */
  cpus_allowed: string;
  /** CPUs online, as a list: `0-3`. */
  cpus_online: string;
  /** `PRETTY_NAME` of os-release. */
  distribution: string | null;
  /** Frequency governor, one entry for each different one: `performance: 0-3`. */
  governors: string[];
  /** Name of the machine. */
  hostname: string;
  /** Idle states of the first measured CPU: name and exit latency in us. */
  idle_states: IdleState[];
  /** `uname -r` */
  kernel: string;
  /** The kernel's command line. */
  kernel_cmdline: string | null;
  /** `uname -v` */
  kernel_version: string;
  /** The virtual machine that the lab made for this run; absent outside of it. */
  lab?: LabFacts | null;
  /** Labels that its owner gave the machine (`/etc/tardy/labels`), such as `rack`. */
  labels?: { [name: string]: string };
  /** Load averages over 1, 5 and 15 minutes when the run began. */
  load_average: number[] | null;
  /** The machine's own id: 32 hexadecimal digits made of `/etc/machine-id`, which they do not reveal, as by `systemd-id128 --app-specific`. Absent if it has none, and in runs of older versions. */
  machine_id?: string | null;
  /** Memory of the machine, bytes. */
  memory_bytes: number | null;
  /** The microcode of the first CPU, as the kernel reports it; absent if it does not, and in runs of older versions. */
  microcode: string | null;
  /** How far the kernel lets itself be preempted. */
  preemption: Preemption;
  /** Share of time real-time tasks may take, in percent; absent if unlimited or unknown. */
  rt_throttling_percent: number | null;
  /** The tardy that measured. */
  tardy_version: string;
  /** Packages, cores and threads as the kernel counts them. */
  topology: CpuPlace[];
  /** What kind of virtual machine or container this is; absent on bare metal or where unknown. */
  virtualisation: string | null;
};

/** The parameters of `fake`. */
export type FakeParameters = {
  /** The CPUs in whose names samples are made up, as a list. */
  cpus: string;
  /** What they are drawn from, as `pareto:index=4,seed=1`, in simulated time; absent for known samples. */
  distribution?: string | null;
  /** Time from one expiry to the next, ns. */
  interval_ns: number;
  /** Whether they are made up as fast as possible. */
  unpaced: boolean;
};

/** One figure over phase offsets, ns. Of a run's series the largest counts; a round trip is whole. */
export type Figure = {
  /** The largest over phase offsets. */
  high: number;
  /** The smallest over phase offsets. */
  low: number;
  /** The median over phase offsets. */
  median: number;
  /** Upper end of it. */
  median_high: number | null;
  /** Lower end of the 95% interval of the median over all phases there could be; absent for the maximum, and with fewer than 6 phases. */
  median_low: number | null;
  /** As in `FIGURES`. */
  name: string;
  /** Whether a run had fewer than 10 samples beyond it: then it is little more than the maximum, and it is not judged. */
  uncertain: boolean;
};

/** The second plan against the first. */
export type FigureChange = {
  /** Upper end of it. */
  high: number;
  /** Lower end of its interval, at the error probability at which it was judged. */
  low: number;
  /** The number of repeats a plan that would decide it if the spread holds; null if it is decided, and where no number would. */
  needed: number | null;
  /** The second to the first. */
  ratio: number;
  /** Whether it is better, worse or the same within 5%: all figures of the page share an error probability of 5%. */
  verdict: AbVerdict;
};

/** The means of a figure over the runs of a cell. */
export type FigureRange = {
  /** The largest of them. */
  high: number;
  /** The smallest of them. */
  low: number;
  /** The median of the runs' means. */
  median: number;
  /** The mean of each run. */
  values: number[];
};

/** One figure of a run. What needs a value is absent without one. */
export type FigureRecord = {
  /** Its upper end. */
  high: number | null;
  /** Lower end of the 95% interval of the mean, by Student's t over the values, and 0 at least if none of them is negative; absent with fewer than two. */
  low: number | null;
  /** Mean of the values. */
  mean: number | null;
  /** `pipe/64KiB`, `fork`, `cpu0/lost`. */
  name: string;
  /** `MB/s`, `us`, `percent`, `loops/ms` or `count`; a later tardy may have others. */
  unit: FigureUnit;
  /** Each repeat, in the order of time. */
  values: number[];
};

/** What a figure is counted in. */
export type FigureUnit = "MB/s" | "us" | "percent" | "loops/ms" | "count" | string;

/** A tree of stacks; columns of one length. A caller comes before what it calls. */
export type FlameGraph = {
  /** The place of the caller plus 1; 0 where nothing calls it: a task, interrupts, a cause. */
  caller: number[];
  /** What it is. */
  kind: FlameKind[];
  /** A place below this percentage was put together with others. */
  least_percent: number;
  /** How many places were put together as too small. */
  merged: number;
  /** What they weigh together. */
  merged_weight: number;
  /** The file it is from, in `strings`; 0 if it has none, and for functions of the kernel. */
  module: number[];
  /** What it is called, in `strings`. */
  name: number[];
  /** Names and files, each once; place 0 is empty. */
  strings: string[];
  /** With all that it calls. */
  weight: number[];
};

/** What a place of a flame graph is. */
export type FlameKind = "task" | "interrupt" | "idle" | "cause" | "user" | "kernel" | "smaller";

/** The result of the messages of one series. */
export type FlowRecord = {
  /** Messages per second that were sent. */
  achieved_per_s: number | null;
  /** Arrived more than once. */
  duplicated: number;
  /** Arrived, but were no messages of this run: of strangers, or damaged. */
  foreign: number;
  /** Arrived later than `late_over_ns` after their time; absent if it was not requested. */
  late: number | null;
  /** What counts as late, ns. */
  late_over_ns: number | null;
  /** Of those sent, how many never came. */
  lost: number;
  /** Of those, how many arrived, each counted once; in a ping-pong, how many were answered. */
  received: number;
  /** Arrived after a later one. */
  reordered: number;
  /** Messages of the measured time; of a stream those that were due, sent or not. */
  sent: number;
  /** The series. */
  series: string;
  /** Messages per second that were asked for; absent if each waits for the one before. */
  wanted_per_s: number | null;
};

/** What other programs used of the measured CPUs: neither tardy and what it started, nor the processes of attached threads. */
export type ForeignRecord = {
  /** Their share of the time of the measured CPUs, from 0 to 1, from before the warm-up to the end. */
  share: number;
  /** Those that used most, also on other CPUs. */
  users: ForeignUser[];
};

/** Other processes of one name. */
export type ForeignUser = {
  /** CPU seconds per second; 2.0 is two CPUs busy. */
  cpus: number;
  /** Their name. */
  name: string;
  /** How many there are. */
  processes: number;
};

/** A setting of the machine as it was found. */
export type FoundSetting = {
  /** What was read back, for people. */
  found: string;
  /** Its name, as in `--set`. */
  name: string;
  /** How many of its files the kernel keeps as they are: interrupts that it manages itself. */
  refused: number;
  /** What it was before, for people. */
  was: string;
};

/** What the kernel said afterwards; null where nothing was arranged, or not yet. */
export type FoundSetup = {
  /** CPUs that were measured, as a list. */
  cpus: string | null;
  /** What the kernel held when the request was in place, in us; null if it had none. */
  dma_latency_us: number | null;
  /** The frequency governor that was set and read back; null if it was not requested. */
  governor: string | null;
  /** Locked memory. */
  memory_lock: MemoryLock | null;
  /** Policy and priority as available: fifo 90, other. */
  policy: string | null;
  /** Settings of the machine that were set (`--set`). */
  settings: FoundSetting[];
  /** What the shield came to; null without one. */
  shield: FoundShield | null;
  /** CPUs that were taken offline, as a list, empty where cores have one hardware thread; null where that was not asked for. */
  siblings_offline: string | null;
  /** One entry a series: what its thread ran as when it was armed. */
  threads: FoundThread[];
};

/** What a shield came to. */
export type FoundShield = {
  /** Who keeps tasks off them. */
  backend: string;
  /** The shielded CPUs, as a list. */
  cpus: string;
  /** Interrupts that were moved off them. */
  interrupts_moved: number;
  /** Interrupts and the like that the kernel did not let go, by number and name. */
  interrupts_stay: string[];
  /** Kernel threads that could not be moved; with cgroup v2 not counted, 0. */
  kernel_tasks_stay: number;
};

/** One measured thread. */
export type FoundThread = {
  /** CPUs it may run on, as a list. */
  cpus: string;
  /** Nice value. */
  nice: number;
  /** Scheduling policy. */
  policy: string;
  /** Real-time priority; 0 for an ordinary task. */
  priority: number;
  /** The name of its series. */
  series: string;
  /** The kernel's number of the thread. */
  tid: number;
  /** Timer slack; 0 for real-time threads, which have none. In ns. */
  timer_slack_ns: number;
};

/** Counts per time and latency bin, empty cells left out; three columns of one length. */
export type Heat = {
  /** Samples in the cell, at least 1. */
  count: number[];
  /** Index into `latency_edges_ns`. */
  latency: number[];
  /** Index into `time_edges_s`. */
  time: number[];
};

/** A task that kept the holder of a lock from the CPU while a thread waited for that lock. */
export type HolderPreempted = {
  /** Whether it ranks below the thread that waits: a priority inversion. */
  is_inversion: boolean;
  /** How long together, ns. */
  ns: number;
  /** Its name, with its policy and priority: `vision (fifo 50)`. */
  task: string;
};

/** A state that an idle CPU may fall into. */
export type IdleState = {
  /** How long leaving it takes, us, as the driver says. */
  exit_latency_us: number;
  /** `POLL`, `C1`, ... */
  name: string;
};

/** The parameters of `interactive`. */
export type InteractiveParameters = {
  /** The CPU on which each of them runs. */
  cpu: number;
  /** The loops that were to stand for a millisecond of work; absent for those that the CPU did in one before the run, which the figure `work` has. */
  loops_per_ms: number | null;
  /** The tasks, in the order in which they are measured. */
  tasks: InteractiveTask[];
};

/** A simulated task. */
export type InteractiveTask = {
  /** `audio`, `video`, `x`, `game` or `custom`. */
  name: string;
  /** From the start of one frame to that of the next, ns; absent for a task that never sleeps. */
  period_ns: number | null;
  /** The time that the work of a frame takes alone, ns; absent if it rises from frame to frame from nothing to the whole period. */
  work_ns: number | null;
};

/** One source of interrupts that moved during the run. */
export type InterruptRow = {
  /** What the kernel calls it: `Local timer interrupts`. */
  description: string;
  /** `irq` or `softirq`. */
  kind: string;
  /** Count per CPU during the run; pairs of CPU and count, CPUs without any left out. */
  per_cpu: ([number, number])[];
  /** Total per second, all CPUs. */
  per_s: number;
  /** `LOC`, `24`, `TIMER`, ... */
  source: string;
};

/** The parameters of `inversion`. */
export type InversionParameters = {
  /** The measured CPUs, as a list. */
  cpus: string;
  /** CPU time of the medium thread in each round, ns. */
  hog_ns: number;
  /** CPU time for which the low thread has the mutex, ns. */
  hold_ns: number;
  /** From the begin of one round to that of the next, ns; the two mutexes take turns. */
  period_ns: number;
};

/** The parameters of `irq`. */
export type IrqParameters = {
  /** The measured CPUs, as a list. */
  cpus: string;
  /** From one interrupt to the next, ns. */
  interval_ns: number;
  /** How long the loop of each turn takes undisturbed, ns; 0 for none. */
  loop_ns: number;
  /** Interrupts per second. */
  rate_hz: number;
  /** What interrupts: `rtc` or `timerfd`. */
  source: string;
};

/** What another run on the same machine found that tracing costs. */
export type KnownCost = {
  /** What it found. */
  cost: TraceCost;
  /** Its loads, by name. */
  loads: string[];
  /** Its name. */
  name: string;
  /** The id of that run. */
  run: string;
};

/** The virtual machine that the lab made for a run. The same values make the same run again, where time is counted. */
export type LabFacts = {
  /** What `tardy run` was given inside, without what the lab itself gives it. */
  arguments: string[];
  /** The CPU model that it emulated. */
  cpu_model: string;
  /** CPUs of the machine. */
  cpus: number;
  /** What the tardy in the second box was given; empty where there was one box. */
  far?: string[];
  /** SHA-256 of the guest's first file system. */
  initramfs_hash: string;
  /** Whether it repeats another column of the table with other padding. */
  is_control: boolean;
  /** The kernel as it was asked for: `standard+preempt=full`. */
  kernel: string;
  /** SHA-256 of the kernel's image. */
  kernel_hash: string;
  /** SHA-256 over everything that decides what comes out. */
  key: string;
  /** The name of the load in the plan. */
  load: string;
  /** `deterministic`, `kvm`, or `emulated`: plain emulation, whose times are the host's noise. */
  mode: string;
  /** Bytes of padding on the kernel's command line. */
  padding: number;
  /** SHA-256 of the part of the first file system that holds tardy and its libraries. */
  program_hash: string;
  /** QEMU's version. */
  qemu: string;
  /** SHA-256 over the latencies of all samples, in their order; absent if none were kept. */
  sample_hash: string | null;
  /** Which phase offset. */
  seed: number;
  /** Where time is counted: an instruction takes 2^shift ns. */
  shift: number | null;
  /** How long the guest waited before it measured, ns; absent if phase offsets lay on a fixed lattice, as before tardy drew them. */
  wait_ns?: number | null;
};

/** A cell without a run. */
export type LabFailure = {
  /** The kernel's name. */
  kernel: string;
  /** The load's name. */
  load: string;
  /** Which phase offset. */
  seed: number;
  /** What went wrong; may have several lines. */
  why: string;
};

/** What a load did during the run. */
export type LoadProof = {
  /** Context switches of the load's tasks, per second of its life. */
  context_switches_per_s: number;
  /** CPU seconds of the load's tasks per second of its life; 2.0 is two CPUs busy. */
  cpu_share: number;
  /** Operations in the measured time. */
  operations: number;
  /** Operations per second of measured time. */
  operations_per_s: number;
  /** Tasks it ran with. */
  tasks: number;
  /** Of those that count operations, how many completed none in its life. */
  tasks_idle: number;
  /** What one operation is: `messages`, ... */
  unit: string;
};

/** One load and the proof that it worked. */
export type LoadRecord = {
  /** How it ended: `stopped`, `exit 1`, `signal 9`, `not started: ...`; absent while running. */
  ended: string | null;
  /** `hackbench`, `idle`, ... */
  name: string;
  /** Parameters by name. */
  parameters: JsonMap;
  /** What it did during the run; absent for a load that never started. */
  proof: LoadProof | null;
};

/** What a load did over time. */
export type LoadTrack = {
  /** Its name. */
  name: string;
  /** Operations per second. */
  operations_per_s: number[];
  /** End of each interval, seconds since the start of the run. */
  t_s: number[];
  /** What one operation is. */
  unit: string;
};

/** How much of the memory was locked. */
export type LockedMemory = "all" | "what existed when armed" | "none";

/** Events that the kernel's tracer lost on a CPU. */
export type LostEvents = {
  /** The CPU. */
  cpu: number;
  /** How many, at least. */
  events: number;
};

/** What the machine did over the measured time, on average. The same interval by interval is in `machine.csv`. */
export type MachineRecord = {
  /** Context switches. */
  context_switches_per_s: number;
  /** Each CPU that was online all the time. */
  cpus: CpuUse[];
  /** Bytes read from disks that are hardware (or a hypervisor's). */
  disk_read_bytes_per_s: number;
  /** Bytes written to them. */
  disk_written_bytes_per_s: number;
  /** Tasks created. */
  forks_per_s: number;
  /** Hard interrupts. */
  interrupts_per_s: number;
  /** Bytes sent over loopback. */
  loopback_bytes_per_s: number;
  /** Page faults that had to wait for a disk. */
  major_faults_per_s: number;
  /** Bytes received from the network, loopback not counted. */
  network_received_bytes_per_s: number;
  /** Bytes sent to the network, loopback not counted. */
  network_sent_bytes_per_s: number;
  /** Page faults of every kind. */
  page_faults_per_s: number;
  /** Soft interrupts. */
  softirqs_per_s: number;
};

/** What the machine did, second by second; columns of one length, rates per second. */
export type MachineTrack = {
  /** Context switches per second, all CPUs. */
  context_switches_per_s: number[];
  /** Share of time that each CPU was not idle, 0 to 1. */
  cpu_busy: CpuBusy[];
  /** Hard interrupts per second, all CPUs. */
  interrupts_per_s: number[];
  /** Soft interrupts per second, all CPUs. */
  softirqs_per_s: number[];
  /** End of each interval, seconds since the start of the run. */
  t_s: number[];
};

/** What a matrix is of. */
export type MatrixKind = "lab" | "plan" | "ab";

/** Locked memory. */
export type MemoryLock = {
  /** Bytes locked when the run began; null where unknown. */
  bytes: number | null;
  /** What was locked. */
  locked: LockedMemory;
};

/** The result of messages, beside how long they took. */
export type MessageRecord = {
  /** How the remote endpoint's clock compares with this machine's; absent if both are one. */
  clock: ClockRecord | null;
  /** Who sent and received: `near` (this tardy), then each remote endpoint. */
  ends: EndRecord[];
  /** One entry a series of whole messages, in their order. */
  flows: FlowRecord[];
  /** Bytes of one message; 0 where others send what they like. */
  size: number;
  /** `tcp`, `zmq-ipc`, ... */
  transport: string;
};

/** The stages of one way of a message, in ns; they sum to it. */
export type MessageStages = {
  /** To the switch to it. */
  dispatch: number;
  /** To the clock read after the call that receives. */
  receive: number;
  /** The sender in the call that sends, or kept from it, up to the receiver's wake-up. */
  send: number;
  /** The same in softirqs, and while neither end had the message. */
  stack: number;
  /** The receiver was made runnable, to the moment its CPU was interrupted for it or left its idle state; 0 where it was woken on its own CPU. */
  wake_up: number;
};

/** The most misses in a window. */
export type MissesInWindow = {
  /** The most misses in any of them. */
  most_missed: number;
  /** A number of periods in a row. */
  periods: number;
};

/** A tracepoint without which some causes cannot be found. */
export type MissingTracepoint = {
  /** What cannot be measured without it. */
  switches_off: string;
  /** Its name. */
  tracepoint: string;
  /** Why it is missing. */
  why: string;
};

/** The parameters of `noise`. */
export type NoiseParameters = {
  /** The measured CPUs, as a list. */
  cpus: string;
  /** A longer time between two clock reads is a gap, ns. */
  gap_over_ns: number;
};

/** How samples came about. */
export type Origin = "measured" | "imported" | "synthesised";

/** A probe whose parameters have no type here. */
export type OtherProbe = {
  /** Its name. */
  name: string;
  /** Its parameters as they are. */
  parameters: JsonMap;
};

/** What a comparison in blocks has beside its figures. */
export type PageAb = {
  /** How A is measured. */
  a: AbSideRecord;
  /** How B is measured. */
  b: AbSideRecord;
  /** Caveats of the blocks, each once, worst first. */
  caveats: AbCaveat[];
  /** Why it ended, if it could not continue; null elsewhere. */
  error: string | null;
  /** How many blocks there were, what equal sides differ by, and what it would take: sentences. */
  how: string[];
  /** The looks that were fixed beforehand. */
  looks: AbLook[];
  /** How far it came. */
  status: AbStatus;
};

/** What all late wake-ups of a run were blamed on. */
export type PageBlame = {
  /** From the widest to the worst; of many causes the largest 40. */
  bands: Band[];
  /** Late wake-ups that were blamed. */
  blamed: number;
  /** Events that the recorder lost. */
  lost_events: number;
  /** The lowest that this threshold was: no wake-up below it was blamed; ns. */
  lowest_threshold_ns: number;
  /** Late wake-ups that were not: their events were overwritten by then, or too many later ones were waiting. */
  passed_over: number;
  /** What late responses were spent on, in one sentence; null if none was late, or none could be measured. */
  responses: string | null;
  /** Above this every wake-up was blamed, at the end of the run; ns. */
  threshold_ns: number;
  /** Wake-ups that matched no record of the BPF programs. */
  unmatched: number;
};

/** One load under one kernel, over phase offsets. */
export type PageCell = {
  /** What the worst wake-ups of its runs were spent on, largest first; none where no run of it was traced. */
  causes: CellCause[];
  /** Texts of caveats that weigh on a run of it. */
  caveats: string[];
  /** Of all samples together: pairs of percentile and latency in ns, the last one the maximum. */
  curve: ([number, number])[];
  /** Ranges over phase offsets. */
  figures: Figure[];
  /** Different phase offsets. */
  phases: number;
  /** Samples of all of them. */
  samples: number;
};

/** One run of a cell. */
export type PageCellRun = {
  /** The name of its column. */
  column: string;
  /** Why the run is missing, or why it cannot be read. */
  error: string | null;
  /** The figures of the matrix in this run. */
  figures: PageRunFigure[];
  /** What gates came to. */
  gates: PageGate[];
  /** Periods that its series missed together; absent if it has no schedule. */
  missed: number | null;
  /** Its page, from this one; absent if none was made. */
  page: string | null;
  /** Its directory, from that of the record; absent if it was not begun. */
  path: string | null;
  /** Which run of its cell, from 1. */
  repeat: number;
  /** The name of its row. */
  row: string;
  /** Samples of whole latencies. */
  samples: number;
  /** Whether it is measured. */
  status: CellStatus;
  /** Whether its numbers may be believed; absent if it has none. */
  validity: Validity | null;
};

/** One side of runs against one other. */
export type PageComparison = {
  /** Places of A's runs in `runs`. */
  a: number[];
  /** What A is called. */
  a_name: string;
  /** Those of B's. */
  b: number[];
  /** What B is called, which is judged. */
  b_name: string;
  /** Which cause differs, in words; empty if that is unknown. */
  cause: string;
  /** What the slowest samples were blamed on, side by side. */
  causes: BandDifference[];
  /** The other figures. */
  described: ComparedFigureRow[];
  /** What is not the same in all runs. */
  facts: FactDifference[];
  /** The figures that are judged, or are to be. */
  figures: ComparedFigureRow[];
  /** Whether there is enough to judge anything; else it is only described. */
  judged: boolean;
  /** What cannot be told, and what it would take. */
  remarks: string[];
  /** What the figures came to, in words. */
  sentence: string;
  /** The ratio at each percentile with its interval. */
  shift: ShiftPoint[];
  /** What the intervals of the shift are; empty if it has no shift. */
  shift_meaning: string;
  /** What is said of B. */
  verdict: AbVerdict;
};

/** Who used the CPUs. */
export type PageCpuUse = {
  /** What is wrong with the profile; empty where nothing is. */
  damage: string;
  /** Of late moments only; null where no peak was traced. */
  late: PageLateUse | null;
  /** What threads of an attached program did in their late cycles, in a sentence for each name; empty without late cycles or a profile. */
  own_time: string[];
  /** Of the whole run, by samples; null where it was not profiled. */
  profile: PageProfile | null;
};

/** What `tardy check` found; see `docs/reference/check.md`. */
export type PageFinding = {
  /** Stable name. */
  code: string;
  /** What was read. */
  evidence: string;
  /** What to do. */
  remedy: string;
  /** `serious`, `matters` or `little`; null where it costs nothing or is unknown. */
  severity: string | null;
  /** `ok`, `costs` or `unknown`. */
  status: string;
};

/** A gate, and what one run says of it. */
export type PageGate = {
  /** As it was written. */
  gate: string;
  /** Why. */
  reason: string;
  /** The series; absent if it is of all together. */
  series: string | null;
  /** `pass`, `fail` or `inconclusive`. */
  verdict: string;
};

/** What late samples waited for. */
export type PageLateUse = {
  /** Stacks weighted by the ns that they cost. */
  flame: FlameGraph;
  /** The peaks in it. */
  peaks: number;
};

/** Kernels beside each other; or the cells of a plan, or two sides. */
export type PageMatrix = {
  /** How the kernels' configurations differ; absent if they are not known. */
  config: ConfigTable | null;
  /** Cells without a run. */
  failed: LabFailure[];
  /** What it comes to, in one sentence; empty of a comparison, whose answer it is. */
  finding: string;
  /** How much of it, in one line. */
  headline: string;
  /** The columns. */
  kernels: Column[];
  /** What it is of. */
  kind: MatrixKind;
  /** The rows. */
  loads: PageRow[];
  /** What the numbers mean, a sentence a mode. */
  meanings: string[];
  /** What a reader must know before comparing. */
  remarks: string[];
  /** Each run by itself, in the order of time, with those that are to be measured yet; none of the lab. */
  runs: PageCellRun[];
  /** How far it came, in words; empty of the lab. */
  state: string;
  /** The parts of a plan; absent if it has none, and of all others. */
  suite: PageSuite | null;
  /** What was measured. */
  title: string;
  /** Cells that an early end left undone. */
  undone: number;
};

/** What a part of a latency went to. */
export type PagePart = {
  /** What the name rests on. */
  basis: Basis;
  /** What kind of cause. */
  cause: Cause;
  /** Of an inference: what it was concluded from; else empty. */
  evidence: string;
  /** Which one. */
  name: string;
  /** Place in `stacks`; 0 for none. */
  stack: number;
  /** Whose work, `name/pid`; empty if it is not a task's. */
  task: string;
};

/** One late wake-up. */
export type PagePeak = {
  /** The same, `CLOCK_MONOTONIC` ns. */
  at_ns: number | null;
  /** Why, largest part first: pairs of place in `parts` and ns, which sum to the latency. */
  blame: ([number, number])[];
  /** The CPU on which the thread ran when it woke up. */
  cpu: number;
  /** How late, ns. */
  latency_ns: number;
  /** Entries left out of the timeline, in the run or here. */
  left_out: number;
  /** Whose. */
  series: string;
  /** Its stages in ns; null where the kernel's record did not match, and of a message. */
  stages: StagesOf | null;
  /** The programmed expiry, seconds since the start of the run; null where nobody knows. */
  t_s: number | null;
  /** What happened. */
  timeline: PageTimeline;
  /** The ways of a message, by time; of nothing else. */
  ways: WayOf[];
};

/** The worst wake-ups, worst first. */
export type PagePeaks = {
  /** Lines of `peaks.jsonl` that could not be read, and why. */
  damaged: string[];
  /** Causes that peaks share. */
  parts: PagePart[];
  /** The peaks. */
  peaks: PagePeak[];
  /** Stacks that peaks share, innermost function first, as places in `strings`; the first is empty. */
  stacks: number[][];
  /** Texts that peaks share; the first is empty. */
  strings: string[];
};

/** What one plan comes to. */
export type PagePlan = {
  /** What it comes to, a sentence each, from what was recorded. */
  answers: string[];
  /** What `tardy check` found before, but for what is fine; absent if it was not checked. */
  findings: PageFinding[] | null;
  /** The machine and its kernel, in a line; empty where nothing was measured. */
  machine: string;
  /** Its name. */
  name: string;
};

/** A profile. */
export type PageProfile = {
  /** Of all CPUs together, in the order hard interrupt, softirq, kernel, user, idle: its name (`hardirq`) and percent of all samples. */
  contexts: ([string, number])[];
  /** Samples that were due; null where samples come at no fixed rate, or the CPUs are not known. */
  due: number | null;
  /** What samples were taken by: `cpu-clock` or `cycles`. */
  event: string;
  /** All stacks. */
  flame: FlameGraph;
  /** Samples a second on each CPU, as asked for. */
  hz: number;
  /** Samples that were lost. */
  lost: number;
  /** Samples whose task or stack had no room. */
  other: number;
  /** Samples in it. */
  samples: number;
  /** By function, those that took most themselves first. */
  symbols: SymbolShare[];
  /** By the names of tasks, those that took most first. */
  tasks: TaskNameShare[];
  /** Whether interrupts are told from what they interrupt. */
  tells_interrupts: boolean;
  /** What weights are in: `ns` or `cycles`. */
  unit: string;
};

/** One load. */
export type PageRow = {
  /** One place a kernel; absent if nothing was measured. */
  cells: (PageCell | null)[];
  /** What it is: `signals (processes=300)`. */
  load: string;
  /** Its name in the plan. */
  name: string;
  /** What is judged, a sentence for each kernel but the first. */
  verdicts: string[];
};

/** One run. */
export type PageRun = {
  /** What the threads of an attached program did to each other, the longest waits first. */
  between: BetweenThreads[];
  /** What late wake-ups were blamed on; null where that was not recorded. */
  blame: PageBlame | null;
  /** The command line, quoted for a shell. */
  command: string;
  /** Who used the CPUs; nothing on a page of a stretch of time. */
  cpu_use: PageCpuUse;
  /** What the run's deadline was to each series; none where it had none, and on a page of a stretch of time. */
  deadlines: SeriesDeadline[];
  /** What is drawn of them: of attached threads with a deadline their responses. */
  drawn: SampleWords;
  /** One sentence for a manager. */
  headline: string;
  /** All series together, counts per time and latency bin. */
  heat: Heat;
  /** Interrupt and softirq sources that moved, busiest first. */
  interrupts: InterruptRow[];
  /** Machine, kernel, load and duration in one line. */
  line: string;
  /** One track a load, in the order of `record.loads`; a load without figures has an empty one. */
  loads: LoadTrack[];
  /** What the machine did meanwhile. */
  machine: MachineTrack;
  /** The worst wake-ups, whole. */
  peaks: PagePeaks;
  /** `run.json`, with the status as a reader sees it. */
  record: RunRecord;
  /** What its samples are called. */
  samples: SampleWords;
  /** Whether too many periods were missed for the view per wake-up: then the view per scheduled period comes first. Of several runs it does not where a series of one of them missed periods and has no such view. */
  scheduled_first: boolean;
  /** One entry a series of wake-ups in `record.series`, in its order; stages are in `stages`. */
  series: PageSeries[];
  /** One entry a stage of a series (`cpu0/irq`), in the order of `record.series`; none where wake-ups were not traced. */
  stages: PageStage[];
  /** What was not seen, and how late it may become in a longer time. */
  tail: RunTail;
  /** Edges of the time bins of the heat maps: bin `i` is from edge `i` to edge `i + 1`. */
  time_edges_s: number[];
  /** What was removed and what was not, in sentences, where it is a run without the time of its hypervisor; empty of others. */
  without_host: string[];
};

/** One figure of one run: that of the series where it is largest. */
export type PageRunFigure = {
  /** The upper end; absent if there are too few samples beyond it. */
  high_ns: number | null;
  /** The lower end of its 95% interval; absent of the maximum, and where nothing tells. */
  low_ns: number | null;
  /** As in `figures` of the cells. */
  name: string;
  /** Whether there are fewer than 10 samples beyond it, as far as they are independent. */
  uncertain: boolean;
  /** Its value, ns. */
  value_ns: number;
};

/** One series per scheduled period: a wake-up late by L at period T counts as L, L-T, ..., L-kT. */
export type PageScheduled = {
  /** As in `PageSeries`. */
  curve: ([number, number])[];
  /** As in `PageSeries`. */
  histogram: ([number, number])[];
};

/** One series. */
export type PageSeries = {
  /** The percentile curve: pairs of percentile (0 to 100) and latency in ns, ascending, the last one the maximum at 100. */
  curve: ([number, number])[];
  /** Counts per time and latency bin of this series alone; absent if there are many series. */
  heat: Heat | null;
  /** Counts per bin of `latency_edges_ns`: pairs of bin and count, empty bins left out. */
  histogram: ([number, number])[];
  /** As in `record.series`. */
  name: string;
  /** Latencies over time. */
  points: Points;
  /** The same per scheduled period; null where no period was missed, for then it is the same, and if it has no schedule. */
  scheduled: PageScheduled | null;
};

/** One stage of a series: a part of each of its latencies. */
export type PageStage = {
  /** Counts per bin of `latency_edges_ns`, as in `PageSeries::histogram`. */
  histogram: ([number, number])[];
  /** As in `record.series`: the series, a slash, the stage. */
  name: string;
};

/** The parts of a plan, or of several plans beside each other. */
export type PageSuite = {
  /** What the worst samples of all runs were spent on, largest first; none where no run was traced. */
  causes: CellCause[];
  /** In the order of the first plan. */
  parts: PlanPart[];
  /** What each plan comes to, in the order they were named. */
  plans: PagePlan[];
};

/** Entries by time; columns of one length. Texts are places in `strings`, 0 for none. */
export type PageTimeline = {
  /** ns after the programmed expiry. */
  at: number[];
  /** On which CPU. */
  cpu: number[];
  /** What else is known. */
  detail: number[];
  /** 0 host, 1 hard interrupts, 2 softirqs, 3 the measured thread, 4 other tasks, 5 idle. */
  lane: number[];
  /** Its name. */
  name: number[];
  /** How long, ns; null for a point. */
  ns: (number | null)[];
  /** Number of the task; 0 where it is about none. */
  pid: number[];
  /** Its priority, as users know it. */
  priority: number[];
  /** Place in `stacks`. */
  stack: number[];
  /** What kind of entry: `irq`, `task`, `waking`, ... */
  what: number[];
};

/** Runs of many nights. */
export type PageTrend = {
  /** The changes, oldest first. */
  events: TrendEvent[];
  /** How many changes there are, and the latest one, in a sentence. */
  headline: string;
  /** How it is to be read, in sentences. */
  meanings: string[];
  /** What was left out, and other things to know; none where nothing was. */
  remarks: string[];
  /** A row a group of runs that are alike, and a series. */
  rows: PageTrendRow[];
  /** What was asked: `Trends of kernel=6.12*`. */
  title: string;
};

/** A change that was seen by looking after each day. */
export type PageTrendAlarm = {
  /** The day after which it was seen, in days since 1970-01-01. */
  day: number;
  /** Whether latencies became longer. */
  is_worse: boolean;
  /** The first day after the change, the same. */
  since: number;
};

/** A change of level. */
export type PageTrendChange = {
  /** The median after it, until the next one, ns. */
  after_ns: number;
  /** The median before it, since the change before, ns. */
  before_ns: number;
  /** Whose share of late time changed. */
  cause: string;
  /** The first day after it, in days since 1970-01-01. */
  day: number;
  /** What the kernel did there. */
  kernel: string;
  /** After over before. */
  ratio: number;
};

/** Days with runs, as columns of one length. */
export type PageTrendDays = {
  /** Days since 1970-01-01, UTC. */
  day: number[];
  /** Places in `kernels`. */
  kernel: number[];
  /** Their largest latency, ns. */
  max_ns: (number | null)[];
  /** Median of their p99, ns; null where too few samples lie beyond it. */
  p99_ns: (number | null)[];
  /** Runs. */
  runs: number[];
  /** Median of their usual maxima, ns; null where their logs do not tell. */
  usual_max_ns: (number | null)[];
};

/** What became of a figure. */
export type PageTrendFigure = {
  /** What nightly looks would have seen. */
  alarms: PageTrendAlarm[];
  /** Where its level changed, oldest first. */
  changes: PageTrendChange[];
  /** Whether there are too few days for a change to be found. */
  is_too_short: boolean;
  /** The median of all days and kernels, ns; null without any. */
  median_ns: number | null;
};

/** A group of runs that are alike, and one of their series. */
export type PageTrendRow = {
  /** Each day and kernel, oldest first: columns of one length. */
  days: PageTrendDays;
  /** Their kernels, in the order of first use. */
  kernels: string[];
  /** The machine. */
  machine: string;
  /** What was measured. */
  measured: string;
  /** p99. */
  p99: PageTrendFigure;
  /** Policy and priority of the measured threads; empty where it is unknown. */
  policy: string;
  /** Runs. */
  runs: number;
  /** The series. */
  series: string;
  /** All that tells the group from others. */
  title: string;
  /** The median of the maxima of equal stretches of a run. */
  usual_max: PageTrendFigure;
};

/** One figure of one row of a part. */
export type PartFigure = {
  /** One for each column of the matrix; null where no run of it has the figure. */
  cells: (FigureRange | null)[];
  /** The second column against the first, of two plans beside each other; null elsewhere, and where there are too few runs. */
  change: FigureChange | null;
  /** As in `figures` of the runs. */
  name: string;
  /** The row of the matrix. */
  row: string;
  /** Its unit. */
  unit: string;
};

/** The parameters of `pingpong`. */
export type PingpongParameters = {
  /** The CPU of the local endpoint. */
  cpu: number;
  /** The CPU of the remote endpoint; absent if another program is the remote endpoint. */
  far_cpu: number | null;
  /** The priority of the remote endpoint; absent likewise. */
  far_priority: number | null;
  /** Whether the remote endpoint is another program than tardy. */
  foreign: boolean;
  /** Bytes of one message. */
  size: number;
  /** The time-out of an answer, ns. */
  timeout_ns: number;
  /** The address of the remote endpoint; absent if this tardy starts it. */
  to: string | null;
  /** What carries the messages: `tcp`, `futex`, ... */
  transport: string;
};

/** One part of a plan, or of plans beside each other. */
export type PlanPart = {
  /** Figures other than latencies; empty if its probe has no such figures. */
  figures: PartFigure[];
  /** Its name. */
  name: string;
  /** Its rows of the matrix, by name. */
  rows: string[];
};

/** What a point of `Points` is. */
export type PointKind = "sample" | "interval_max";

/** Latencies over time; two columns of one length. */
export type Points = {
  /** What a point is. */
  kind: PointKind;
  /** Latency in ns; early wake-ups are negative. */
  latency_ns: number[];
  /** Samples (or intervals) there were; more than the points where the crowd was thinned. */
  of: number;
  /** Seconds since the start of the run. */
  t_s: number[];
  /** How the crowd was thinned, in words; empty where it was not. */
  thinned: string;
};

/** The preemption model, and which source said so. */
export type Preemption = {
  /** `none`, `voluntary`, `full`, `lazy`, `rt` or `unknown`. */
  model: string;
  /** Where that comes from; empty for `unknown`. */
  source: string;
};

/** What measured, with every parameter that it ran with. What a run has whatever its probe, as its length, is in `RunParameters`. */
export type ProbeRecord = {
  name: "timer";
  parameters: TimerParameters;
} | {
  name: "pingpong";
  parameters: PingpongParameters;
} | {
  name: "receive";
  parameters: ReceiveParameters;
} | {
  name: "stream";
  parameters: StreamParameters;
} | {
  name: "noise";
  parameters: NoiseParameters;
} | {
  name: "bandwidth";
  parameters: BandwidthParameters;
} | {
  name: "interactive";
  parameters: InteractiveParameters;
} | {
  name: "inversion";
  parameters: InversionParameters;
} | {
  name: "irq";
  parameters: IrqParameters;
} | {
  name: "audio";
  parameters: AudioParameters;
} | {
  name: "attach";
  parameters: AttachParameters;
} | {
  name: "fake";
  parameters: FakeParameters;
} | OtherProbe;

/** Where samples come from, and which program wrote the run. */
export type Provenance = {
  /** How the samples came about. */
  origin: Origin;
  /** The program that measured, or that was imported from, or that made them up. */
  program: string;
  /** Whether it came in a bundle from elsewhere. */
  received?: boolean;
  /** Whether host names, arguments, paths and stacks were taken out. */
  redacted?: boolean;
  /** Its version; empty where it has none. */
  version: string;
};

/** The parameters of `receive`. */
export type ReceiveParameters = {
  /** The CPU of the thread that reads. */
  cpu: number;
  /** The CPU of the sender. */
  far_cpu: number | null;
  /** The priority of the sender. */
  far_priority: number | null;
  /** The network interface; absent with `listen`. */
  iface: string | null;
  /** The UDP port; 0 for a free one. Absent with `iface`. */
  listen: number | null;
  /** Packets per second: `1kpps`. */
  rate: string | null;
  /** Who sends: `builtin` for a process of this tardy, `none` for others. */
  sender: string;
  /** Bytes of one packet; absent without a sender, as all that follows. */
  size: number | null;
  /** How packets are waited for: `block`, `spin`, ... */
  wait: string;
};

/** What a run was to be, whatever its probe. */
export type RunParameters = {
  /** What latencies were to keep, ns; absent for none. */
  deadline_ns?: number | null;
  /** The length that was asked for, ns; absent if samples are counted instead, and if the run was to continue until it was ended (`--duration inf`): then `samples` is absent too. */
  duration_ns: number | null;
  /** All later than this are kept instead, ns; absent for none. */
  peak_over_ns: number | null;
  /** How many of the worst wake-ups are kept whole; absent if none are looked into. */
  peaks: number | null;
  /** How often a second every CPU was sampled for `profile.json`; absent for never. */
  profile_hz?: number | null;
  /** Whether every single sample is kept. */
  raw: boolean;
  /** The samples per series that were asked for; absent if a time was, or no end. */
  samples: number | null;
  /** The latency above which the run ends, ns; absent for none. */
  stop_over_ns: number | null;
  /** Time before the start that is not recorded, ns. */
  warmup_ns: number;
};

/** What `run.json` holds. */
export type RunRecord = {
  /** The command line that made it. */
  argv: string[];
  /** The threads that were looked at; absent with other probes, and until the end. */
  attached?: AttachRecord | null;
  /** Every caveat of this run, worst first. */
  caveats: Caveat[];
  /** Under which conditions; absent until the end. */
  conditions: ConditionsRecord | null;
  /** From the first programmed expiry to the end of the last loop, ns. */
  duration_ns: number;
  /** RFC 3339, UTC; absent while running. */
  ended_at: string | null;
  /** What the machine was. */
  facts: Facts;
  /** Results other than latencies, in the order in which they are measured; none if a probe has only latencies. */
  figures: FigureRecord[];
  /** Unique: start time in ms and four random digits, `20261121-203055.042-1f0c`; of older runs in seconds. */
  id: string;
  /** What disturbed the machine meanwhile. */
  loads: LoadRecord[];
  /** The planned length of an interval of `series.hlog`, ns. The last one of a run is shorter; in a run that lasts longer than was expected they grow to a thousandth of it. */
  log_interval_ns: number;
  /** What the machine did meanwhile, on average; absent until the end. */
  machine: MachineRecord | null;
  /** The result of messages; absent if none are exchanged, and until the end. */
  messages: MessageRecord | null;
  /** What the user calls it; the id where no name was given. */
  name: string;
  /** How long, and what was kept. */
  parameters: RunParameters;
  /** What measured. */
  probe: ProbeRecord;
  /** Where its samples come from. */
  provenance: Provenance;
  /** See `SCHEMA_VERSION`. */
  schema_version: number;
  /** One entry a series, in the order of CPUs; none where a probe measures no latencies. */
  series: SeriesSummary[];
  /** What tardy arranged. */
  setup: SetupRecord;
  /** `CLOCK_MONOTONIC` at `started_at`, ns: the zero of `t_s` in other files. */
  start_monotonic_ns: number;
  /** RFC 3339, UTC: the first programmed expiry after the warm-up. */
  started_at: string;
  /** How far it came. */
  status: Status;
  /** Whether wake-ups were traced, as asked and as found. */
  trace: TraceRecord;
  /** The verdict, from the caveats. */
  validity: Validity;
  /** Only where a reader was asked for the run without the time that its hypervisor took: what was removed from the figures above. Never in the file of a run. */
  without_host?: WithoutHost | null;
};

/** What can be said of the tails of a run. */
export type RunTail = {
  /** How long was measured, s. */
  observed_s: number;
  /** Series of whole latencies, in the order of the record. */
  series: SeriesTail[];
};

/** What one sample is. */
export type SampleName = "wake_up" | "round_trip" | "packet" | "gap" | "frame" | "wait" | "sample";

/** What samples are called. */
export type SampleWords = {
  /** What they are. */
  kind: SampleName;
  /** More of them: `wake-ups`. */
  many: string;
  /** What axes are called that have their length: `latency`. */
  measure: string;
  /** One of them: `wake-up`. */
  one: string;
};

/** The view per scheduled period: a wake-up late by L at period T counts as L, L-T, ..., L-kT. */
export type Scheduled = {
  /** Periods counted. */
  count: number;
  /** Largest latency. */
  max: number | null;
  /** Mean, rounded. */
  mean: number | null;
  /** As in `SeriesSummary`. */
  percentiles: { [name: string]: number };
  /** As in `SeriesSummary`. */
  uncertain: string[];
};

/** What a deadline is to one series. */
export type SeriesDeadline = {
  /** A thread has no period, so that what it skipped without a cycle is in no count. False for what is not attached. */
  cycles_alone?: boolean;
  /** The deadline, ns. */
  deadline_ns: number;
  /** The cycles of an attached thread begin when others wake it: what was done before for the same work is not in them, so that they do not tell whether the work met the deadline. False for others. */
  from_wakeup?: boolean;
  /** Misses in a row; null where single samples were not kept. */
  longest_burst: number | null;
  /** Those that missed it. Of counts: those in the bucket that holds the deadline are counted as missed, a thousandth of its value wide; of cycles of an attached thread as they were counted. */
  missed: number;
  /** Of an event loop without a period, its longest work for others, ns, if that took longer than the deadline: what fell due meanwhile had no timer yet by which its lateness would be known. Absent for others. */
  other_work_ns?: number | null;
  /** Periods; of what has no schedule, samples. Of work after wake-ups its cycles, and the periods that passed without one. */
  periods: number;
  /** The series. */
  series: string;
  /** The share that met it, 0 to 1; null if that is not known: of cycles that begin when others wake the thread, and beside such work for others. */
  share_met: number | null;
  /** The upper end; null likewise. */
  share_met_high: number | null;
  /** The lower end of its 95% interval; null with fewer than 10 independent misses. */
  share_met_low: number | null;
  /** Of an attached thread how often something that it did was not seen: at most this number of cycles is in neither count. 0 for others. */
  unseen: number;
  /** The most misses in any such number of periods in a row; empty likewise. */
  windows: MissesInWindow[];
  /** The interval of the log with most late samples. */
  worst_interval: WorstInterval | null;
};

/** How much of something one series had. */
export type SeriesShare = {
  /** How much, ns. */
  ns: number;
  /** Whose. */
  series: string;
};

/** One series in figures. All latencies in ns; values that need a sample are absent without one. */
export type SeriesSummary = {
  /** Latencies over one hour, and those of an imported run that have no value in its file; in `count`, `mean` and `max`, not in the percentiles. */
  above: number;
  /** All wake-ups: those in the histogram, `early` and `above`. */
  count: number;
  /** The CPU it was measured on. */
  cpu: number | null;
  /** Wake-ups before their expiry; in `count`, `min` and `mean`, not in the percentiles. */
  early: number;
  /** Largest latency. */
  max: number | null;
  /** Mean of all latencies, rounded. */
  mean: number | null;
  /** Smallest latency; negative when early. */
  min: number | null;
  /** Periods that passed without a wake-up; absent if it has no schedule. */
  missed: number | null;
  /** `cpu0`, `cpu0#1`, ... */
  name: string;
  /** Highest value of the bucket (0.1% wide) in which the percentile lies, at most `max`. */
  percentiles: { [name: string]: number };
  /** The period of its schedule, ns; absent if it has none. */
  period_ns: number | null;
  /** The same per scheduled period instead of per wake-up; absent if it has no schedule, and where late wake-ups do not account for the periods that were missed. */
  scheduled: Scheduled | null;
  /** Which stage: `irq`, `dispatch`, ...; absent for whole latencies. */
  stage: string | null;
  /** The series that it is a stage of, whose latencies it is a part of; absent for whole ones. */
  stage_of: string | null;
  /** Standard deviation of the histogram's latencies, rounded. */
  stddev: number | null;
  /** The name of the attached thread that it is of; then the series of that name has its samples too. Absent for others. */
  thread_of?: string | null;
  /** The names of those percentiles that have fewer than 10 samples beyond them. */
  uncertain: string[];
  /** Always `ns`. */
  unit: string;
};

/** What can be said of the tail of one series. */
export type SeriesTail = {
  /** Its largest latency, ns: none was over it. */
  max_ns: number;
  /** The model; null if it has none. */
  model: TailModel | null;
  /** Its name. */
  name: string;
  /** What the model is made of: `samples`, or `interval_maxima` where these were not kept. */
  pieces: string;
  /** At 95% what is over it comes less than once in this time, s, if the load stays. */
  rarer_than_s: number;
  /** Why it is missing; null if it has one. */
  refusal: string | null;
};

/** What was removed from one series. */
export type SeriesWithoutHost = {
  /** Scheduled periods that passed in that time. */
  missed_removed: number;
  /** Its name. */
  name: string;
  /** What was removed from them, ns. */
  removed_ns: number;
  /** Samples that were moved. */
  samples: number;
};

/** What was arranged, as asked and as read back from the kernel. */
export type SetupRecord = {
  /** What the user or the default wanted; null where the samples were not measured by tardy. */
  asked: AskedSetup | null;
  /** What the kernel said afterwards. */
  found: FoundSetup;
};

/** What an interval of a shift is from. */
export type ShiftBasis = "samples" | "runs";

/** One percentile of B against that of A. */
export type ShiftPoint = {
  /** That of A, ns; of several runs the geometric mean. */
  a_ns: number;
  /** That of B. */
  b_ns: number;
  /** What the interval is from. */
  basis: ShiftBasis;
  /** The upper end. */
  high: number | null;
  /** The lower end of the ratio's 95% interval; null if it has none. */
  low: number | null;
  /** Which percentile: `99.9`. */
  percentile: string;
  /** B / A. */
  ratio: number;
  /** The series; null for all series together. */
  series: string | null;
};

/** The stages of one latency, in ns; they sum to it. */
export type StagesOf = {
  /** Runnable to switched in. */
  dispatch: number;
  /** To the moment the thread was made runnable. */
  handler: number;
  /** Programmed expiry to the entry of the timer interrupt. */
  irq: number;
  /** Interrupt to the timer's callback, where that runs in a softirq. */
  softirq: number;
  /** Switched in to the clock read in user space. */
  user: number;
};

/** How far a run came. */
export type Status = "running" | "complete" | "interrupted" | "stopped_over" | "crashed" | "imported";

/** The parameters of `stream`. */
export type StreamParameters = {
  /** Whether the remote endpoint sends as well. */
  both_ways: boolean;
  /** The CPU of the local endpoint. */
  cpu: number;
  /** The CPU of the remote endpoint; absent if it is an echo. */
  far_cpu: number | null;
  /** The priority of the remote endpoint; absent if it is an echo. */
  far_priority: number | null;
  /** How the remote endpoint waits; absent if it is an echo. */
  far_wait: string | null;
  /** The multicast group; absent if it has none. */
  group: string | null;
  /** A packet is late when it comes later than this after its time, ns. */
  late_over_ns: number;
  /** Packets per second of each sender. */
  rate_per_s: number;
  /** Receivers in the group; absent if it has none. */
  receivers: number | null;
  /** Bytes of one packet. */
  size: number;
  /** The address of the echo; absent if it has none. */
  to: string | null;
  /** What carries the packets: `udp`, `tcp`, `multicast`, ... */
  transport: string;
  /** How the local endpoint waits: `sleep`, `spin`, ... */
  wait: string;
};

/** What one function did. Shares are of all samples. */
export type SymbolShare = {
  /** `[kernel]`, or the path of a program or library. */
  module: string;
  /** Its name. */
  name: string;
  /** Percent in the function itself. */
  own: number;
  /** Samples in the function itself. */
  samples: number;
  /** Percent in it and in what it calls. */
  total: number;
};

/** A level that is exceeded once in a time, on average, if this mix of load continues. */
export type TailLevel = {
  /** The upper end, ns; null if it has none. */
  high_ns: number | null;
  /** Whether the time is more than ten times the observed one: an extrapolation of the model. */
  is_extrapolation: boolean;
  /** The level, ns. */
  level_ns: number;
  /** The lower end of its 95% interval, ns. */
  low_ns: number;
  /** The time, s. */
  period_s: number;
};

/** A model of a tail: clusters over a threshold, a generalised Pareto distribution of their maxima. */
export type TailModel = {
  /** Clusters over it. */
  clusters: number;
  /** How likely samples of the model itself would fit it worse. */
  fit_probability: number;
  /** Levels that are exceeded once in an hour, a day, a year. */
  levels: TailLevel[];
  /** The shape: 0 is exponential, below it there is an end, above it a power law. */
  shape: number;
  /** The upper end. */
  shape_high: number;
  /** The lower end of its 95% interval. */
  shape_low: number;
  /** The threshold, ns. */
  threshold_ns: number;
};

/** What tasks of one name did. Shares are of all samples; interrupts belong to no task. */
export type TaskNameShare = {
  /** Percent in the kernel. */
  kernel: number;
  /** Their name; empty for those that had no room, and `[interrupts]` for no task. */
  name: string;
  /** Samples. */
  samples: number;
  /** Percent. */
  share: number;
  /** How many there were. */
  tasks: number;
  /** Percent in user mode. */
  user: number;
};

/** What the cycles of threads of one name are to keep. */
export type ThreadDeadline = {
  /** Ns. */
  deadline_ns: number;
  /** The name, as series have it. */
  name: string;
};

/** What a measured thread used. */
export type ThreadUse = {
  /** CPU time, ns. */
  cpu_ns: number;
  /** Times it was made to leave the CPU. */
  involuntary_switches: number;
  /** Page faults served from a disk. */
  major_faults: number;
  /** Times it was moved to another CPU; absent if the kernel does not tell. */
  migrations: number | null;
  /** Page faults served without a disk. */
  minor_faults: number;
  /** Its series. */
  series: string;
  /** Turns of its loop, where that never sleeps; those that were interrupted are among them. */
  turns?: number | null;
  /** Times it went to sleep voluntarily. */
  voluntary_switches: number;
};

/** The parameters of `timer`. */
export type TimerParameters = {
  /** The measured CPUs, as a list: `0-3,7`. */
  cpus: string;
  /** Distance between the expiries of one thread and the next, ns. */
  distance_ns: number;
  /** Time from one expiry to the next, ns. */
  interval_ns: number;
  /** How much longer that is for each thread than for the one before, ns; absent if it is the same for all. */
  interval_step_ns?: number | null;
  /** The loops that were to stand for a millisecond of work; absent for those that each CPU did in one before the run, which the figures `work/CPU` have. */
  loops_per_ms?: number | null;
  /** How much the priority falls from one thread of a CPU to the next. */
  priority_step: number;
  /** Threads on each of them; with `total_threads`, the most on one. */
  threads_per_cpu: number;
  /** Threads in total, where they are on one CPU after another, and again from the first. */
  total_threads?: number | null;
  /** How its threads wait, as `--wake` has it. */
  wake: string;
  /** The time that the work after each wake-up takes alone, ns; absent if it has none. */
  work_ns?: number | null;
};

/** The tracing backend. */
export type TraceBy = "bpf" | "tracefs";

/** What tracing adds, from slices with and without it in turn, under the loads of the run, before it. Medians are over the wake-ups of all measured threads. */
export type TraceCost = {
  /** Median of the differences of the whole machine's busy share within the pairs, in percent of one CPU. */
  added_cpu_percent: number;
  /** Median of the differences within the pairs; ns. Negative where noise is larger than the cost. */
  added_median_ns: number;
  /** Smallest and largest of these differences; ns. */
  added_range_ns: [number, number];
  /** CPU time of the measured threads per wake-up, without and with; ns. What the programs do in interrupts is not in it. */
  cpu_per_wakeup_ns: [number, number];
  /** The same with tracing; ns. */
  median_with_ns: number;
  /** Median of the slices' median latencies, without tracing; ns. */
  median_without_ns: number;
  /** Pairs of slices. */
  pairs: number;
  /** Length of a slice, ns. */
  slice_ns: number;
};

/** How much is found out about wake-ups. */
export type TraceMode = "auto" | "off" | "stages" | "peaks";

/** Whether wake-ups were traced. */
export type TraceRecord = {
  /** What was asked for. */
  asked: TraceMode;
  /** Late wake-ups that were blamed. */
  blamed: number;
  /** By whom; absent if nothing was traced, and in runs of versions that had BPF alone. */
  by?: TraceBy | null;
  /** What tracing costs here, where it was measured (`--calibrate`). */
  cost: TraceCost | null;
  /** What it came to; never `auto`. */
  found: TraceMode;
  /** What the latest run of the store with `--calibrate` found on the same machine, with the same kernel and probe, where as much was traced; absent if it has none, and where this run measured it itself. */
  known_cost?: KnownCost | null;
  /** Events that the recorder lost. */
  lost_events: number;
  /** CPUs on which the kernel's tracer lost events. */
  lost_on?: LostEvents[];
  /** Tracepoints that this kernel lacks or refuses. */
  missing: MissingTracepoint[];
  /** Late wake-ups that were not: their events were overwritten by then, or too many later ones were waiting. */
  passed_over: number;
  /** Peaks that were not kept, as there was no more room for them (`--peak-room`). */
  peaks_left_out?: number;
  /** Above this every wake-up was blamed, at the end of the run; ns. 0 if there was no such wake-up. */
  threshold_ns: number;
  /** Wake-ups that matched nothing that was traced and so have no stages. */
  unmatched: number;
  /** Why not what was asked for, with the remedy; absent if it was had. */
  why_not: string | null;
  /** Why not by BPF, with the remedy; absent if it was, and where that was not asked for. */
  why_not_bpf?: string | null;
};

/** What happened to the runs of a row, or of rows that differ in their series alone. */
export type TrendEvent = {
  /** Whose share of late time changed. */
  cause: string;
  /** The first day of its largest change. */
  day: string;
  /** Whether latencies became longer. */
  is_worse: boolean;
  /** What the kernel did there. */
  kernel: string;
  /** A line a series, the largest change first: `cpu0: p99 50.0 us -> 75.0 us (x 1.50)`. */
  lines: string[];
  /** The largest factor, 1 or more, whichever the side. */
  size: number;
  /** The runs: `vm, timer, no load started, 60 s, fifo 90`. */
  title: string;
};

/** The validity of a run, set by its most severe caveat. */
export type Validity = "valid" | "weakened" | "invalid";

/** What readers call that for which the data has short names. */
export type Vocabulary = {
  /** Each kind of cause. */
  causes: { [name: string]: string };
  /** The samples of all runs together. */
  samples: SampleWords;
  /** Series that are not called by their names. */
  series: { [name: string]: string };
};

/** One way of a message that was late; the ways sum to the latency. */
export type WayOf = {
  /** How long it took, ns. */
  ns: number;
  /** Absent if the receiver had not gone to sleep: nothing shows when the message came; and of `pacing`. */
  stages: MessageStages | null;
  /** `there` or `back`; `packet` from its stamp on; `pacing` from its scheduled time until it was sent. */
  way: string;
};

/** What was removed from a run, and what could not be. Latencies in ns. */
export type WithoutHost = {
  /** What the steal clock of the measured CPUs counted in the run, ns, in ticks of 10 ms; absent where it was not recorded. A sample may share stolen time with another, and most of it may be where no sample was waited for. */
  counted_ns: number | null;
  /** Samples up to this latency were not judged: what was stolen from them stays in; ns. The threshold follows the 99th percentile, and this is the one at the end of the run. */
  judged_over_ns: number;
  /** Series that are left out, because what was stolen from them is not known apart: stages. */
  left_out: string[];
  /** Events that the recorder lost: stolen time may be among them. */
  lost_events: number;
  /** Scheduled periods that passed in that time and are no longer counted as missed; they have no sample. */
  missed_removed: number;
  /** Judged samples with stolen time that stay as they were: the table had no room for them, or the log has no such sample at that time. */
  not_moved: number;
  /** Late samples that were not judged: what was stolen from them stays in. */
  passed_over: number;
  /** The stolen time that was removed from them, ns. */
  removed_ns: number;
  /** Samples that were moved to a smaller latency. */
  samples: number;
  /** By series; only those with stolen time. */
  series: SeriesWithoutHost[];
  /** Samples that were judged without a record of the wake-up. */
  unmatched: number;
};

/** The interval of the log with most late samples. */
export type WorstInterval = {
  /** Those that missed the deadline. */
  missed: number;
  /** Its samples. */
  samples: number;
  /** When it began, s from the start of the run. */
  start_s: number;
};

/** The structure of a `Page`, as JSON Schema. */
export const STRUCTURE: JsonMap = {
  $defs: {
    AbCaveat: {"properties":{"blocks_a":{"type":"integer"},"blocks_b":{"type":"integer"},"code":{"type":"string"},"effect":{"$ref":"#/$defs/Effect"},"remedy":{"type":"string"},"text":{"type":"string"}},"required":["code","effect","blocks_a","blocks_b","text","remedy"],"type":"object"},
    AbLook: {"properties":{"pairs":{"type":"integer"},"verdict":{"anyOf":[{"$ref":"#/$defs/AbVerdict"},{"type":"null"}]}},"required":["pairs","verdict"],"type":"object"},
    AbSideRecord: {"properties":{"options":{"type":"string"},"prepare":{"type":["string","null"]}},"required":["options","prepare"],"type":"object"},
    AbStatus: {"enum":["running","complete","interrupted","invalid","failed"]},
    AbVerdict: {"enum":["better","worse","same","inconclusive"]},
    AskedSetting: {"properties":{"name":{"type":"string"},"value":{"type":"string"}},"required":["name","value"],"type":"object"},
    AskedSetup: {"properties":{"cpus":{"type":"string"},"dma_latency_us":{"type":["integer","null"]},"governor":{"type":["string","null"]},"housekeeping":{"type":["string","null"]},"max_idle_latency_us":{"type":["integer","null"]},"memory_lock":{"type":"boolean"},"no_smt_sibling":{"type":"boolean"},"policy":{"type":"string"},"policy_explicit":{"type":"boolean"},"priority":{"type":"integer"},"priority_explicit":{"type":"boolean"},"settings":{"items":{"$ref":"#/$defs/AskedSetting"},"type":"array"},"shield":{"type":"boolean"},"timer_slack_ns":{"type":"integer"}},"required":["policy","policy_explicit","priority","priority_explicit","cpus","timer_slack_ns","memory_lock","dma_latency_us","shield","governor","max_idle_latency_us","no_smt_sibling","housekeeping","settings"],"type":"object"},
    AttachParameters: {"properties":{"by":{"type":"string"},"deadlines":{"items":{"$ref":"#/$defs/ThreadDeadline"},"type":"array"},"only":{"type":["string","null"]},"target":{"type":"string"}},"required":["by","target"],"type":"object"},
    AttachRecord: {"properties":{"command":{"anyOf":[{"$ref":"#/$defs/AttachedCommand"},{"type":"null"}]},"ended_ns":{"type":["integer","null"]},"gave_way":{"type":"integer"},"never_slept":{"items":{"type":"string"},"type":"array"},"no_room":{"type":"integer"},"pooled_only":{"type":"integer"},"room":{"type":"integer"},"rows":{"items":{"$ref":"#/$defs/AttachedRow"},"type":"array"},"threads":{"type":"integer"},"wait_calls":{"items":{"$ref":"#/$defs/AttachedWaitCall"},"type":"array"}},"required":["threads","pooled_only","no_room","room","gave_way","ended_ns","command","rows"],"type":"object"},
    AttachedBudget: {"properties":{"deadline_ns":{"type":"integer"},"period_ns":{"type":"integer"},"runtime_ns":{"type":"integer"}},"required":["runtime_ns","deadline_ns","period_ns"],"type":"object"},
    AttachedCommand: {"properties":{"argv":{"items":{"type":"string"},"type":"array"},"ended":{"type":["string","null"]},"ended_by_tardy":{"type":"boolean"},"exit_code":{"type":["integer","null"]}},"required":["argv","ended","exit_code","ended_by_tardy"],"type":"object"},
    AttachedFaults: {"properties":{"cycles":{"type":"integer"},"major":{"type":"integer"},"minor":{"type":"integer"}},"required":["cycles","minor","major"],"type":"object"},
    AttachedLatency: {"enum":["lateness","dispatch"]},
    AttachedOver: {"properties":{"cycles":{"type":"integer"},"deadline_ns":{"type":"integer"},"faults":{"anyOf":[{"$ref":"#/$defs/AttachedFaults"},{"type":"null"}]},"late_ns":{"type":"integer"},"ready_ns":{"type":"integer"},"run_ns":{"type":"integer"},"unseen_ns":{"type":"integer"},"wait_ns":{"type":"integer"},"waits":{"anyOf":[{"$ref":"#/$defs/AttachedWaits"},{"type":"null"}]}},"required":["deadline_ns","cycles","late_ns","run_ns","ready_ns","wait_ns","unseen_ns"],"type":"object"},
    AttachedRow: {"properties":{"asides":{"type":"integer"},"blocked":{"$ref":"#/$defs/AttachedTimes"},"budget":{"anyOf":[{"$ref":"#/$defs/AttachedBudget"},{"type":"null"}]},"by_interrupt":{"type":"integer"},"by_ipi":{"type":"integer"},"by_own_timer":{"type":"integer"},"by_task":{"type":"integer"},"by_timer":{"type":"integer"},"cycle_begin":{"$ref":"#/$defs/CycleBegin"},"dispatch":{"anyOf":[{"$ref":"#/$defs/AttachedTimes"},{"type":"null"}]},"in_slack":{"type":"integer"},"kept_waiting":{"anyOf":[{"$ref":"#/$defs/AttachedTimes"},{"type":"null"}]},"latency":{"anyOf":[{"$ref":"#/$defs/AttachedLatency"},{"type":"null"}]},"lateness":{"anyOf":[{"$ref":"#/$defs/AttachedTimes"},{"type":"null"}]},"missed":{"type":["integer","null"]},"other_work":{"anyOf":[{"$ref":"#/$defs/AttachedTimes"},{"type":"null"}]},"over":{"anyOf":[{"$ref":"#/$defs/AttachedOver"},{"type":"null"}]},"period_changed":{"type":"boolean"},"period_ns":{"type":["integer","null"]},"pid":{"type":["integer","null"]},"policy":{"type":["string","null"]},"preempted":{"type":"integer"},"ready":{"$ref":"#/$defs/AttachedTimes"},"response":{"anyOf":[{"$ref":"#/$defs/AttachedTimes"},{"type":"null"}]},"run":{"$ref":"#/$defs/AttachedTimes"},"series":{"type":"string"},"slack_ns":{"type":["integer","null"]},"threads":{"type":["integer","null"]},"tid":{"type":["integer","null"]},"unmatched":{"type":"integer"},"unsure_periods":{"type":["integer","null"]},"wakeups":{"type":"integer"}},"required":["series","tid","pid","threads","latency","wakeups","by_timer","by_interrupt","by_ipi","by_task","by_own_timer","asides","in_slack","slack_ns","period_ns","preempted","unmatched","run","ready","blocked"],"type":"object"},
    AttachedTimes: {"properties":{"count":{"type":"integer"},"max":{"type":["integer","null"]},"mean":{"type":["integer","null"]},"p50":{"type":["integer","null"]},"p99":{"type":["integer","null"]}},"required":["count","mean","p50","p99","max"],"type":"object"},
    AttachedWaitCall: {"properties":{"call":{"type":"string"},"failed":{"type":["string","null"]}},"required":["call"],"type":"object"},
    AttachedWaits: {"properties":{"futex_ns":{"type":["integer","null"]},"io_ns":{"type":"integer"},"other_ns":{"type":"integer"},"pi_mutex_ns":{"type":["integer","null"]}},"required":["futex_ns","pi_mutex_ns","io_ns","other_ns"],"type":"object"},
    AudioParameters: {"properties":{"cpu":{"type":"integer"},"frames":{"type":"integer"},"interval_ns":{"type":"integer"},"rate_hz":{"type":"integer"},"server":{"type":["string","null"]}},"required":["server","frames","rate_hz","interval_ns","cpu"],"type":"object"},
    Band: {"properties":{"blamed_share":{"type":"number"},"causes":{"items":{"$ref":"#/$defs/CauseInBand"},"type":"array"},"from":{"type":"integer"},"name":{"type":"string"},"ns":{"type":"integer"},"to":{"type":"integer"},"wakeups":{"type":"integer"}},"required":["name","from","to","wakeups","ns","blamed_share","causes"],"type":"object"},
    BandDifference: {"properties":{"a_ns":{"type":"number"},"b_ns":{"type":"number"},"band":{"type":"string"},"blamed_a":{"type":"number"},"blamed_b":{"type":"number"},"causes":{"items":{"$ref":"#/$defs/CauseDifference"},"type":"array"}},"required":["band","a_ns","b_ns","blamed_a","blamed_b","causes"],"type":"object"},
    BandwidthParameters: {"properties":{"cpu":{"type":"integer"},"directory":{"type":["string","null"]},"far_cpu":{"type":"integer"},"figures":{"items":{"type":"string"},"type":"array"}},"required":["figures","cpu","far_cpu","directory"],"type":"object"},
    Basis: {"enum":["measured","inferred","none"]},
    BetweenThreads: {"properties":{"ns":{"type":"integer"},"on":{"type":"string"},"preempted_by":{"items":{"$ref":"#/$defs/HolderPreempted"},"type":"array"},"times":{"type":"integer"},"who":{"type":"string"},"whom":{"type":"string"}},"required":["who","whom","on","times","ns","preempted_by"],"type":"object"},
    Cause: {"enum":["irqs_off","hardirq","softirq","thread","nonpreemptible","lock","idle_exit","migration","throttled","page_fault","own_work","wait","stopped","host","hardware","tracing","unexplained"]},
    CauseDifference: {"properties":{"a_ns":{"type":"number"},"b_ns":{"type":"number"},"cause":{"$ref":"#/$defs/Cause"},"name":{"type":"string"}},"required":["cause","name","a_ns","b_ns"],"type":"object"},
    CauseInBand: {"properties":{"cause":{"$ref":"#/$defs/Cause"},"inferred":{"type":"number"},"name":{"type":"string"},"ns":{"type":"integer"},"series":{"items":{"$ref":"#/$defs/SeriesShare"},"type":"array"},"share":{"type":"number"}},"required":["cause","name","ns","share","inferred","series"],"type":"object"},
    Caveat: {"properties":{"code":{"type":"string"},"effect":{"$ref":"#/$defs/Effect"},"remedy":{"type":"string"},"text":{"type":"string"},"values":{"additionalProperties":true,"type":"object"}},"required":["code","effect","text","remedy","values"],"type":"object"},
    CellCause: {"properties":{"cause":{"$ref":"#/$defs/Cause"},"name":{"type":"string"},"share":{"type":"number"}},"required":["cause","name","share"],"type":"object"},
    CellStatus: {"enum":["pending","measured","failed"]},
    ClockRecord: {"properties":{"drift_ppb":{"type":"number"},"exchanges":{"type":"integer"},"offset_ns":{"type":"integer"},"shortest_round_trip_ns":{"type":"integer"},"uncertainty_ns":{"type":"integer"}},"required":["offset_ns","uncertainty_ns","drift_ppb","exchanges","shortest_round_trip_ns"],"type":"object"},
    Column: {"properties":{"hash":{"type":"string"},"is_control":{"type":"boolean"},"mode":{"type":"string"},"name":{"type":"string"},"preemption":{"type":"string"},"release":{"type":"string"}},"required":["name","release","preemption","hash","mode","is_control"],"type":"object"},
    ComparedFigureRow: {"properties":{"a":{"type":"number"},"above_ns":{"type":["integer","null"]},"b":{"type":"number"},"figure":{"type":"string"},"floor":{"type":["number","null"]},"high":{"type":["number","null"]},"low":{"type":["number","null"]},"lower_is_better":{"type":"boolean"},"margin":{"type":"number"},"pairs":{"type":"integer"},"pairs_needed":{"type":["integer","null"]},"ratio":{"type":"number"},"series":{"type":["string","null"]},"unit":{"$ref":"#/$defs/ComparedUnit"},"verdict":{"$ref":"#/$defs/AbVerdict"}},"required":["series","figure","unit","above_ns","lower_is_better","a","b","ratio","low","high","margin","floor","pairs","pairs_needed","verdict"],"type":"object"},
    ComparedUnit: {"enum":["ns","share"]},
    ConditionsRecord: {"properties":{"clock_sources":{"items":{"type":"string"},"type":"array"},"counted_ns":{"type":["integer","null"]},"cpus":{"items":{"$ref":"#/$defs/CpuRecord"},"type":"array"},"foreign":{"anyOf":[{"$ref":"#/$defs/ForeignRecord"},{"type":"null"}]},"locked_bytes":{"type":["integer","null"]},"looks":{"type":"integer"},"rt_throttled":{"type":["boolean","null"]},"smis":{"type":["integer","null"]},"suspended_ns":{"type":"integer"},"threads":{"items":{"$ref":"#/$defs/ThreadUse"},"type":"array"}},"required":["looks","counted_ns","threads","cpus","clock_sources","suspended_ns","locked_bytes","smis","rt_throttled"],"type":"object"},
    ConfigRow: {"properties":{"option":{"type":"string"},"values":{"items":{"type":["string","null"]},"type":"array"}},"required":["option","values"],"type":"object"},
    ConfigTable: {"properties":{"kernels":{"items":{"type":"string"},"type":"array"},"others":{"type":"integer"},"rows":{"items":{"$ref":"#/$defs/ConfigRow"},"type":"array"}},"required":["kernels","rows","others"],"type":"object"},
    CpuBusy: {"properties":{"busy":{"items":{"type":"number"},"type":"array"},"cpu":{"type":"integer"}},"required":["cpu","busy"],"type":"object"},
    CpuPlace: {"properties":{"core":{"type":"integer"},"cpu":{"type":"integer"},"package":{"type":"integer"}},"required":["cpu","package","core"],"type":"object"},
    CpuRecord: {"properties":{"cpu":{"type":"integer"},"frequency_changes":{"type":["integer","null"]},"frequency_khz":{"prefixItems":[{"type":"integer"},{"type":"integer"}],"type":["array","null"]},"governor":{"type":["string","null"]},"nmis":{"type":["integer","null"]},"throttles":{"type":["integer","null"]}},"required":["cpu","governor","frequency_khz","frequency_changes","throttles","nmis"],"type":"object"},
    CpuUse: {"properties":{"busy":{"type":"number"},"cpu":{"type":"integer"},"steal":{"type":"number"}},"required":["cpu","busy","steal"],"type":"object"},
    CycleBegin: {"enum":["timer","wake_up"]},
    Effect: {"enum":["informs","weakens","invalidates"]},
    EndRecord: {"properties":{"address":{"type":["string","null"]},"cpu":{"type":["integer","null"]},"name":{"type":"string"},"place":{"type":"string"},"policy":{"type":["string","null"]},"receive_buffer_bytes":{"type":["integer","null"]},"send_buffer_bytes":{"type":["integer","null"]},"version":{"type":["string","null"]},"wait":{"type":["string","null"]}},"required":["name","place","address","cpu","policy","wait","receive_buffer_bytes","send_buffer_bytes","version"],"type":"object"},
    FactDifference: {"properties":{"a":{"items":{"type":"string"},"type":"array"},"b":{"items":{"type":"string"},"type":"array"},"fact":{"type":"string"}},"required":["fact","a","b"],"type":"object"},
    Facts: {"properties":{"architecture":{"type":"string"},"boot_id":{"type":["string","null"]},"clock_source":{"type":["string","null"]},"cpu_model":{"type":["string","null"]},"cpus_allowed":{"type":"string"},"cpus_online":{"type":"string"},"distribution":{"type":["string","null"]},"governors":{"items":{"type":"string"},"type":"array"},"hostname":{"type":"string"},"idle_states":{"items":{"$ref":"#/$defs/IdleState"},"type":"array"},"kernel":{"type":"string"},"kernel_cmdline":{"type":["string","null"]},"kernel_version":{"type":"string"},"lab":{"anyOf":[{"$ref":"#/$defs/LabFacts"},{"type":"null"}]},"labels":{"additionalProperties":{"type":"string"},"type":"object"},"load_average":{"items":{"type":"number"},"type":["array","null"]},"machine_id":{"type":["string","null"]},"memory_bytes":{"type":["integer","null"]},"microcode":{"type":["string","null"]},"preemption":{"$ref":"#/$defs/Preemption"},"rt_throttling_percent":{"type":["number","null"]},"tardy_version":{"type":"string"},"topology":{"items":{"$ref":"#/$defs/CpuPlace"},"type":"array"},"virtualisation":{"type":["string","null"]}},"required":["hostname","kernel","kernel_version","architecture","distribution","kernel_cmdline","preemption","cpu_model","microcode","cpus_online","cpus_allowed","topology","clock_source","virtualisation","governors","idle_states","memory_bytes","load_average","rt_throttling_percent","boot_id","tardy_version"],"type":"object"},
    FakeParameters: {"properties":{"cpus":{"type":"string"},"distribution":{"type":["string","null"]},"interval_ns":{"type":"integer"},"unpaced":{"type":"boolean"}},"required":["interval_ns","cpus","unpaced"],"type":"object"},
    Figure: {"properties":{"high":{"type":"integer"},"low":{"type":"integer"},"median":{"type":"integer"},"median_high":{"type":["integer","null"]},"median_low":{"type":["integer","null"]},"name":{"type":"string"},"uncertain":{"type":"boolean"}},"required":["name","low","high","median","median_low","median_high","uncertain"],"type":"object"},
    FigureChange: {"properties":{"high":{"type":"number"},"low":{"type":"number"},"needed":{"type":["integer","null"]},"ratio":{"type":"number"},"verdict":{"$ref":"#/$defs/AbVerdict"}},"required":["ratio","low","high","verdict","needed"],"type":"object"},
    FigureRange: {"properties":{"high":{"type":"number"},"low":{"type":"number"},"median":{"type":"number"},"values":{"items":{"type":"number"},"type":"array"}},"required":["median","low","high","values"],"type":"object"},
    FigureRecord: {"properties":{"high":{"type":["number","null"]},"low":{"type":["number","null"]},"mean":{"type":["number","null"]},"name":{"type":"string"},"unit":{"$ref":"#/$defs/FigureUnit"},"values":{"items":{"type":"number"},"type":"array"}},"required":["name","unit","mean","low","high","values"],"type":"object"},
    FigureUnit: {"anyOf":[{"const":"MB/s","type":"string"},{"const":"us","type":"string"},{"const":"percent","type":"string"},{"const":"loops/ms","type":"string"},{"const":"count","type":"string"},{"type":"string"}]},
    FlameGraph: {"properties":{"caller":{"items":{"type":"integer"},"type":"array"},"kind":{"items":{"$ref":"#/$defs/FlameKind"},"type":"array"},"least_percent":{"type":"number"},"merged":{"type":"integer"},"merged_weight":{"type":"integer"},"module":{"items":{"type":"integer"},"type":"array"},"name":{"items":{"type":"integer"},"type":"array"},"strings":{"items":{"type":"string"},"type":"array"},"weight":{"items":{"type":"integer"},"type":"array"}},"required":["strings","caller","name","module","kind","weight","merged","merged_weight","least_percent"],"type":"object"},
    FlameKind: {"enum":["task","interrupt","idle","cause","user","kernel","smaller"]},
    FlowRecord: {"properties":{"achieved_per_s":{"type":["number","null"]},"duplicated":{"type":"integer"},"foreign":{"type":"integer"},"late":{"type":["integer","null"]},"late_over_ns":{"type":["integer","null"]},"lost":{"type":"integer"},"received":{"type":"integer"},"reordered":{"type":"integer"},"sent":{"type":"integer"},"series":{"type":"string"},"wanted_per_s":{"type":["number","null"]}},"required":["series","sent","received","lost","late","late_over_ns","duplicated","reordered","foreign","wanted_per_s","achieved_per_s"],"type":"object"},
    ForeignRecord: {"properties":{"share":{"type":"number"},"users":{"items":{"$ref":"#/$defs/ForeignUser"},"type":"array"}},"required":["share","users"],"type":"object"},
    ForeignUser: {"properties":{"cpus":{"type":"number"},"name":{"type":"string"},"processes":{"type":"integer"}},"required":["name","processes","cpus"],"type":"object"},
    FoundSetting: {"properties":{"found":{"type":"string"},"name":{"type":"string"},"refused":{"type":"integer"},"was":{"type":"string"}},"required":["name","was","found","refused"],"type":"object"},
    FoundSetup: {"properties":{"cpus":{"type":["string","null"]},"dma_latency_us":{"type":["integer","null"]},"governor":{"type":["string","null"]},"memory_lock":{"anyOf":[{"$ref":"#/$defs/MemoryLock"},{"type":"null"}]},"policy":{"type":["string","null"]},"settings":{"items":{"$ref":"#/$defs/FoundSetting"},"type":"array"},"shield":{"anyOf":[{"$ref":"#/$defs/FoundShield"},{"type":"null"}]},"siblings_offline":{"type":["string","null"]},"threads":{"items":{"$ref":"#/$defs/FoundThread"},"type":"array"}},"required":["policy","cpus","memory_lock","dma_latency_us","shield","governor","siblings_offline","settings","threads"],"type":"object"},
    FoundShield: {"properties":{"backend":{"type":"string"},"cpus":{"type":"string"},"interrupts_moved":{"type":"integer"},"interrupts_stay":{"items":{"type":"string"},"type":"array"},"kernel_tasks_stay":{"type":"integer"}},"required":["cpus","backend","interrupts_moved","interrupts_stay","kernel_tasks_stay"],"type":"object"},
    FoundThread: {"properties":{"cpus":{"type":"string"},"nice":{"type":"integer"},"policy":{"type":"string"},"priority":{"type":"integer"},"series":{"type":"string"},"tid":{"type":"integer"},"timer_slack_ns":{"type":"integer"}},"required":["series","tid","policy","priority","nice","cpus","timer_slack_ns"],"type":"object"},
    Heat: {"properties":{"count":{"items":{"type":"integer"},"type":"array"},"latency":{"items":{"type":"integer"},"type":"array"},"time":{"items":{"type":"integer"},"type":"array"}},"required":["time","latency","count"],"type":"object"},
    HolderPreempted: {"properties":{"is_inversion":{"type":"boolean"},"ns":{"type":"integer"},"task":{"type":"string"}},"required":["task","ns","is_inversion"],"type":"object"},
    IdleState: {"properties":{"exit_latency_us":{"type":"integer"},"name":{"type":"string"}},"required":["name","exit_latency_us"],"type":"object"},
    InteractiveParameters: {"properties":{"cpu":{"type":"integer"},"loops_per_ms":{"type":["integer","null"]},"tasks":{"items":{"$ref":"#/$defs/InteractiveTask"},"type":"array"}},"required":["tasks","cpu","loops_per_ms"],"type":"object"},
    InteractiveTask: {"properties":{"name":{"type":"string"},"period_ns":{"type":["integer","null"]},"work_ns":{"type":["integer","null"]}},"required":["name","period_ns","work_ns"],"type":"object"},
    InterruptRow: {"properties":{"description":{"type":"string"},"kind":{"type":"string"},"per_cpu":{"items":{"prefixItems":[{"type":"integer"},{"type":"integer"}],"type":"array"},"type":"array"},"per_s":{"type":"number"},"source":{"type":"string"}},"required":["kind","source","description","per_s","per_cpu"],"type":"object"},
    InversionParameters: {"properties":{"cpus":{"type":"string"},"hog_ns":{"type":"integer"},"hold_ns":{"type":"integer"},"period_ns":{"type":"integer"}},"required":["hold_ns","hog_ns","period_ns","cpus"],"type":"object"},
    IrqParameters: {"properties":{"cpus":{"type":"string"},"interval_ns":{"type":"integer"},"loop_ns":{"type":"integer"},"rate_hz":{"type":"integer"},"source":{"type":"string"}},"required":["source","rate_hz","interval_ns","loop_ns","cpus"],"type":"object"},
    KnownCost: {"properties":{"cost":{"$ref":"#/$defs/TraceCost"},"loads":{"items":{"type":"string"},"type":"array"},"name":{"type":"string"},"run":{"type":"string"}},"required":["run","name","loads","cost"],"type":"object"},
    LabFacts: {"properties":{"arguments":{"items":{"type":"string"},"type":"array"},"cpu_model":{"type":"string"},"cpus":{"type":"integer"},"far":{"items":{"type":"string"},"type":"array"},"initramfs_hash":{"type":"string"},"is_control":{"type":"boolean"},"kernel":{"type":"string"},"kernel_hash":{"type":"string"},"key":{"type":"string"},"load":{"type":"string"},"mode":{"type":"string"},"padding":{"type":"integer"},"program_hash":{"type":"string"},"qemu":{"type":"string"},"sample_hash":{"type":["string","null"]},"seed":{"type":"integer"},"shift":{"type":["integer","null"]},"wait_ns":{"type":["integer","null"]}},"required":["mode","qemu","cpu_model","shift","seed","padding","is_control","kernel","kernel_hash","initramfs_hash","sample_hash","load","program_hash","cpus","arguments","key"],"type":"object"},
    LabFailure: {"properties":{"kernel":{"type":"string"},"load":{"type":"string"},"seed":{"type":"integer"},"why":{"type":"string"}},"required":["load","kernel","seed","why"],"type":"object"},
    LoadProof: {"properties":{"context_switches_per_s":{"type":"number"},"cpu_share":{"type":"number"},"operations":{"type":"integer"},"operations_per_s":{"type":"number"},"tasks":{"type":"integer"},"tasks_idle":{"type":"integer"},"unit":{"type":"string"}},"required":["unit","operations","operations_per_s","context_switches_per_s","cpu_share","tasks","tasks_idle"],"type":"object"},
    LoadRecord: {"properties":{"ended":{"type":["string","null"]},"name":{"type":"string"},"parameters":{"additionalProperties":true,"type":"object"},"proof":{"anyOf":[{"$ref":"#/$defs/LoadProof"},{"type":"null"}]}},"required":["name","parameters","proof","ended"],"type":"object"},
    LoadTrack: {"properties":{"name":{"type":"string"},"operations_per_s":{"items":{"type":"number"},"type":"array"},"t_s":{"items":{"type":"number"},"type":"array"},"unit":{"type":"string"}},"required":["name","unit","t_s","operations_per_s"],"type":"object"},
    LockedMemory: {"enum":["all","what existed when armed","none"]},
    LostEvents: {"properties":{"cpu":{"type":"integer"},"events":{"type":"integer"}},"required":["cpu","events"],"type":"object"},
    MachineRecord: {"properties":{"context_switches_per_s":{"type":"number"},"cpus":{"items":{"$ref":"#/$defs/CpuUse"},"type":"array"},"disk_read_bytes_per_s":{"type":"number"},"disk_written_bytes_per_s":{"type":"number"},"forks_per_s":{"type":"number"},"interrupts_per_s":{"type":"number"},"loopback_bytes_per_s":{"type":"number"},"major_faults_per_s":{"type":"number"},"network_received_bytes_per_s":{"type":"number"},"network_sent_bytes_per_s":{"type":"number"},"page_faults_per_s":{"type":"number"},"softirqs_per_s":{"type":"number"}},"required":["interrupts_per_s","softirqs_per_s","context_switches_per_s","forks_per_s","page_faults_per_s","major_faults_per_s","disk_read_bytes_per_s","disk_written_bytes_per_s","network_received_bytes_per_s","network_sent_bytes_per_s","loopback_bytes_per_s","cpus"],"type":"object"},
    MachineTrack: {"properties":{"context_switches_per_s":{"items":{"type":"number"},"type":"array"},"cpu_busy":{"items":{"$ref":"#/$defs/CpuBusy"},"type":"array"},"interrupts_per_s":{"items":{"type":"number"},"type":"array"},"softirqs_per_s":{"items":{"type":"number"},"type":"array"},"t_s":{"items":{"type":"number"},"type":"array"}},"required":["t_s","interrupts_per_s","softirqs_per_s","context_switches_per_s","cpu_busy"],"type":"object"},
    MatrixKind: {"enum":["lab","plan","ab"]},
    MemoryLock: {"properties":{"bytes":{"type":["integer","null"]},"locked":{"$ref":"#/$defs/LockedMemory"}},"required":["locked","bytes"],"type":"object"},
    MessageRecord: {"properties":{"clock":{"anyOf":[{"$ref":"#/$defs/ClockRecord"},{"type":"null"}]},"ends":{"items":{"$ref":"#/$defs/EndRecord"},"type":"array"},"flows":{"items":{"$ref":"#/$defs/FlowRecord"},"type":"array"},"size":{"type":"integer"},"transport":{"type":"string"}},"required":["transport","size","ends","flows","clock"],"type":"object"},
    MessageStages: {"properties":{"dispatch":{"type":"integer"},"receive":{"type":"integer"},"send":{"type":"integer"},"stack":{"type":"integer"},"wake_up":{"type":"integer"}},"required":["send","stack","wake_up","dispatch","receive"],"type":"object"},
    MissesInWindow: {"properties":{"most_missed":{"type":"integer"},"periods":{"type":"integer"}},"required":["periods","most_missed"],"type":"object"},
    MissingTracepoint: {"properties":{"switches_off":{"type":"string"},"tracepoint":{"type":"string"},"why":{"type":"string"}},"required":["tracepoint","switches_off","why"],"type":"object"},
    NoiseParameters: {"properties":{"cpus":{"type":"string"},"gap_over_ns":{"type":"integer"}},"required":["gap_over_ns","cpus"],"type":"object"},
    Origin: {"enum":["measured","imported","synthesised"]},
    OtherProbe: {"properties":{"name":{"type":"string"},"parameters":{"additionalProperties":true,"type":"object"}},"required":["name","parameters"],"type":"object"},
    PageAb: {"properties":{"a":{"$ref":"#/$defs/AbSideRecord"},"b":{"$ref":"#/$defs/AbSideRecord"},"caveats":{"items":{"$ref":"#/$defs/AbCaveat"},"type":"array"},"error":{"type":["string","null"]},"how":{"items":{"type":"string"},"type":"array"},"looks":{"items":{"$ref":"#/$defs/AbLook"},"type":"array"},"status":{"$ref":"#/$defs/AbStatus"}},"required":["status","a","b","how","looks","caveats","error"],"type":"object"},
    PageBlame: {"properties":{"bands":{"items":{"$ref":"#/$defs/Band"},"type":"array"},"blamed":{"type":"integer"},"lost_events":{"type":"integer"},"lowest_threshold_ns":{"type":"integer"},"passed_over":{"type":"integer"},"responses":{"type":["string","null"]},"threshold_ns":{"type":"integer"},"unmatched":{"type":"integer"}},"required":["threshold_ns","lowest_threshold_ns","blamed","passed_over","unmatched","lost_events","bands","responses"],"type":"object"},
    PageCell: {"properties":{"causes":{"items":{"$ref":"#/$defs/CellCause"},"type":"array"},"caveats":{"items":{"type":"string"},"type":"array"},"curve":{"items":{"prefixItems":[{"type":"number"},{"type":"integer"}],"type":"array"},"type":"array"},"figures":{"items":{"$ref":"#/$defs/Figure"},"type":"array"},"phases":{"type":"integer"},"samples":{"type":"integer"}},"required":["phases","samples","figures","curve","caveats","causes"],"type":"object"},
    PageCellRun: {"properties":{"column":{"type":"string"},"error":{"type":["string","null"]},"figures":{"items":{"$ref":"#/$defs/PageRunFigure"},"type":"array"},"gates":{"items":{"$ref":"#/$defs/PageGate"},"type":"array"},"missed":{"type":["integer","null"]},"page":{"type":["string","null"]},"path":{"type":["string","null"]},"repeat":{"type":"integer"},"row":{"type":"string"},"samples":{"type":"integer"},"status":{"$ref":"#/$defs/CellStatus"},"validity":{"anyOf":[{"$ref":"#/$defs/Validity"},{"type":"null"}]}},"required":["row","column","repeat","status","page","path","validity","samples","missed","figures","gates","error"],"type":"object"},
    PageComparison: {"properties":{"a":{"items":{"type":"integer"},"type":"array"},"a_name":{"type":"string"},"b":{"items":{"type":"integer"},"type":"array"},"b_name":{"type":"string"},"cause":{"type":"string"},"causes":{"items":{"$ref":"#/$defs/BandDifference"},"type":"array"},"described":{"items":{"$ref":"#/$defs/ComparedFigureRow"},"type":"array"},"facts":{"items":{"$ref":"#/$defs/FactDifference"},"type":"array"},"figures":{"items":{"$ref":"#/$defs/ComparedFigureRow"},"type":"array"},"judged":{"type":"boolean"},"remarks":{"items":{"type":"string"},"type":"array"},"sentence":{"type":"string"},"shift":{"items":{"$ref":"#/$defs/ShiftPoint"},"type":"array"},"shift_meaning":{"type":"string"},"verdict":{"$ref":"#/$defs/AbVerdict"}},"required":["a","b","a_name","b_name","verdict","judged","sentence","cause","figures","described","shift","shift_meaning","facts","causes","remarks"],"type":"object"},
    PageCpuUse: {"properties":{"damage":{"type":"string"},"late":{"anyOf":[{"$ref":"#/$defs/PageLateUse"},{"type":"null"}]},"own_time":{"items":{"type":"string"},"type":"array"},"profile":{"anyOf":[{"$ref":"#/$defs/PageProfile"},{"type":"null"}]}},"required":["profile","late","own_time","damage"],"type":"object"},
    PageFinding: {"properties":{"code":{"type":"string"},"evidence":{"type":"string"},"remedy":{"type":"string"},"severity":{"type":["string","null"]},"status":{"type":"string"}},"required":["code","status","severity","evidence","remedy"],"type":"object"},
    PageGate: {"properties":{"gate":{"type":"string"},"reason":{"type":"string"},"series":{"type":["string","null"]},"verdict":{"type":"string"}},"required":["gate","series","verdict","reason"],"type":"object"},
    PageLateUse: {"properties":{"flame":{"$ref":"#/$defs/FlameGraph"},"peaks":{"type":"integer"}},"required":["peaks","flame"],"type":"object"},
    PageMatrix: {"properties":{"config":{"anyOf":[{"$ref":"#/$defs/ConfigTable"},{"type":"null"}]},"failed":{"items":{"$ref":"#/$defs/LabFailure"},"type":"array"},"finding":{"type":"string"},"headline":{"type":"string"},"kernels":{"items":{"$ref":"#/$defs/Column"},"type":"array"},"kind":{"$ref":"#/$defs/MatrixKind"},"loads":{"items":{"$ref":"#/$defs/PageRow"},"type":"array"},"meanings":{"items":{"type":"string"},"type":"array"},"remarks":{"items":{"type":"string"},"type":"array"},"runs":{"items":{"$ref":"#/$defs/PageCellRun"},"type":"array"},"state":{"type":"string"},"suite":{"anyOf":[{"$ref":"#/$defs/PageSuite"},{"type":"null"}]},"title":{"type":"string"},"undone":{"type":"integer"}},"required":["kind","state","title","finding","headline","meanings","remarks","kernels","loads","config","failed","undone","runs","suite"],"type":"object"},
    PagePart: {"properties":{"basis":{"$ref":"#/$defs/Basis"},"cause":{"$ref":"#/$defs/Cause"},"evidence":{"type":"string"},"name":{"type":"string"},"stack":{"type":"integer"},"task":{"type":"string"}},"required":["cause","name","task","basis","evidence","stack"],"type":"object"},
    PagePeak: {"properties":{"at_ns":{"type":["integer","null"]},"blame":{"items":{"prefixItems":[{"type":"integer"},{"type":"integer"}],"type":"array"},"type":"array"},"cpu":{"type":"integer"},"latency_ns":{"type":"integer"},"left_out":{"type":"integer"},"series":{"type":"string"},"stages":{"anyOf":[{"$ref":"#/$defs/StagesOf"},{"type":"null"}]},"t_s":{"type":["number","null"]},"timeline":{"$ref":"#/$defs/PageTimeline"},"ways":{"items":{"$ref":"#/$defs/WayOf"},"type":"array"}},"required":["t_s","at_ns","series","cpu","latency_ns","stages","ways","blame","timeline","left_out"],"type":"object"},
    PagePeaks: {"properties":{"damaged":{"items":{"type":"string"},"type":"array"},"parts":{"items":{"$ref":"#/$defs/PagePart"},"type":"array"},"peaks":{"items":{"$ref":"#/$defs/PagePeak"},"type":"array"},"stacks":{"items":{"items":{"type":"integer"},"type":"array"},"type":"array"},"strings":{"items":{"type":"string"},"type":"array"}},"required":["damaged","strings","stacks","parts","peaks"],"type":"object"},
    PagePlan: {"properties":{"answers":{"items":{"type":"string"},"type":"array"},"findings":{"items":{"$ref":"#/$defs/PageFinding"},"type":["array","null"]},"machine":{"type":"string"},"name":{"type":"string"}},"required":["name","machine","answers","findings"],"type":"object"},
    PageProfile: {"properties":{"contexts":{"items":{"prefixItems":[{"type":"string"},{"type":"number"}],"type":"array"},"type":"array"},"due":{"type":["integer","null"]},"event":{"type":"string"},"flame":{"$ref":"#/$defs/FlameGraph"},"hz":{"type":"integer"},"lost":{"type":"integer"},"other":{"type":"integer"},"samples":{"type":"integer"},"symbols":{"items":{"$ref":"#/$defs/SymbolShare"},"type":"array"},"tasks":{"items":{"$ref":"#/$defs/TaskNameShare"},"type":"array"},"tells_interrupts":{"type":"boolean"},"unit":{"type":"string"}},"required":["event","unit","hz","samples","due","lost","other","tells_interrupts","contexts","tasks","symbols","flame"],"type":"object"},
    PageRow: {"properties":{"cells":{"items":{"anyOf":[{"$ref":"#/$defs/PageCell"},{"type":"null"}]},"type":"array"},"load":{"type":"string"},"name":{"type":"string"},"verdicts":{"items":{"type":"string"},"type":"array"}},"required":["name","load","cells","verdicts"],"type":"object"},
    PageRun: {"properties":{"between":{"items":{"$ref":"#/$defs/BetweenThreads"},"type":"array"},"blame":{"anyOf":[{"$ref":"#/$defs/PageBlame"},{"type":"null"}]},"command":{"type":"string"},"cpu_use":{"$ref":"#/$defs/PageCpuUse"},"deadlines":{"items":{"$ref":"#/$defs/SeriesDeadline"},"type":"array"},"drawn":{"$ref":"#/$defs/SampleWords"},"headline":{"type":"string"},"heat":{"$ref":"#/$defs/Heat"},"interrupts":{"items":{"$ref":"#/$defs/InterruptRow"},"type":"array"},"line":{"type":"string"},"loads":{"items":{"$ref":"#/$defs/LoadTrack"},"type":"array"},"machine":{"$ref":"#/$defs/MachineTrack"},"peaks":{"$ref":"#/$defs/PagePeaks"},"record":{"$ref":"#/$defs/RunRecord"},"samples":{"$ref":"#/$defs/SampleWords"},"scheduled_first":{"type":"boolean"},"series":{"items":{"$ref":"#/$defs/PageSeries"},"type":"array"},"stages":{"items":{"$ref":"#/$defs/PageStage"},"type":"array"},"tail":{"$ref":"#/$defs/RunTail"},"time_edges_s":{"items":{"type":"number"},"type":"array"},"without_host":{"items":{"type":"string"},"type":"array"}},"required":["headline","line","without_host","record","samples","drawn","scheduled_first","command","time_edges_s","heat","series","stages","machine","loads","interrupts","blame","between","peaks","deadlines","tail","cpu_use"],"type":"object"},
    PageRunFigure: {"properties":{"high_ns":{"type":["integer","null"]},"low_ns":{"type":["integer","null"]},"name":{"type":"string"},"uncertain":{"type":"boolean"},"value_ns":{"type":"integer"}},"required":["name","value_ns","low_ns","high_ns","uncertain"],"type":"object"},
    PageScheduled: {"properties":{"curve":{"items":{"prefixItems":[{"type":"number"},{"type":"integer"}],"type":"array"},"type":"array"},"histogram":{"items":{"prefixItems":[{"type":"integer"},{"type":"integer"}],"type":"array"},"type":"array"}},"required":["curve","histogram"],"type":"object"},
    PageSeries: {"properties":{"curve":{"items":{"prefixItems":[{"type":"number"},{"type":"integer"}],"type":"array"},"type":"array"},"heat":{"anyOf":[{"$ref":"#/$defs/Heat"},{"type":"null"}]},"histogram":{"items":{"prefixItems":[{"type":"integer"},{"type":"integer"}],"type":"array"},"type":"array"},"name":{"type":"string"},"points":{"$ref":"#/$defs/Points"},"scheduled":{"anyOf":[{"$ref":"#/$defs/PageScheduled"},{"type":"null"}]}},"required":["name","curve","histogram","scheduled","heat","points"],"type":"object"},
    PageStage: {"properties":{"histogram":{"items":{"prefixItems":[{"type":"integer"},{"type":"integer"}],"type":"array"},"type":"array"},"name":{"type":"string"}},"required":["name","histogram"],"type":"object"},
    PageSuite: {"properties":{"causes":{"items":{"$ref":"#/$defs/CellCause"},"type":"array"},"parts":{"items":{"$ref":"#/$defs/PlanPart"},"type":"array"},"plans":{"items":{"$ref":"#/$defs/PagePlan"},"type":"array"}},"required":["plans","parts","causes"],"type":"object"},
    PageTimeline: {"properties":{"at":{"items":{"type":"integer"},"type":"array"},"cpu":{"items":{"type":"integer"},"type":"array"},"detail":{"items":{"type":"integer"},"type":"array"},"lane":{"items":{"type":"integer"},"type":"array"},"name":{"items":{"type":"integer"},"type":"array"},"ns":{"items":{"type":["integer","null"]},"type":"array"},"pid":{"items":{"type":"integer"},"type":"array"},"priority":{"items":{"type":"integer"},"type":"array"},"stack":{"items":{"type":"integer"},"type":"array"},"what":{"items":{"type":"integer"},"type":"array"}},"required":["at","ns","cpu","lane","what","name","pid","priority","detail","stack"],"type":"object"},
    PageTrend: {"properties":{"events":{"items":{"$ref":"#/$defs/TrendEvent"},"type":"array"},"headline":{"type":"string"},"meanings":{"items":{"type":"string"},"type":"array"},"remarks":{"items":{"type":"string"},"type":"array"},"rows":{"items":{"$ref":"#/$defs/PageTrendRow"},"type":"array"},"title":{"type":"string"}},"required":["title","headline","meanings","remarks","events","rows"],"type":"object"},
    PageTrendAlarm: {"properties":{"day":{"type":"integer"},"is_worse":{"type":"boolean"},"since":{"type":"integer"}},"required":["day","since","is_worse"],"type":"object"},
    PageTrendChange: {"properties":{"after_ns":{"type":"integer"},"before_ns":{"type":"integer"},"cause":{"type":"string"},"day":{"type":"integer"},"kernel":{"type":"string"},"ratio":{"type":"number"}},"required":["day","before_ns","after_ns","ratio","kernel","cause"],"type":"object"},
    PageTrendDays: {"properties":{"day":{"items":{"type":"integer"},"type":"array"},"kernel":{"items":{"type":"integer"},"type":"array"},"max_ns":{"items":{"type":["integer","null"]},"type":"array"},"p99_ns":{"items":{"type":["integer","null"]},"type":"array"},"runs":{"items":{"type":"integer"},"type":"array"},"usual_max_ns":{"items":{"type":["integer","null"]},"type":"array"}},"required":["day","kernel","runs","p99_ns","usual_max_ns","max_ns"],"type":"object"},
    PageTrendFigure: {"properties":{"alarms":{"items":{"$ref":"#/$defs/PageTrendAlarm"},"type":"array"},"changes":{"items":{"$ref":"#/$defs/PageTrendChange"},"type":"array"},"is_too_short":{"type":"boolean"},"median_ns":{"type":["integer","null"]}},"required":["median_ns","is_too_short","changes","alarms"],"type":"object"},
    PageTrendRow: {"properties":{"days":{"$ref":"#/$defs/PageTrendDays"},"kernels":{"items":{"type":"string"},"type":"array"},"machine":{"type":"string"},"measured":{"type":"string"},"p99":{"$ref":"#/$defs/PageTrendFigure"},"policy":{"type":"string"},"runs":{"type":"integer"},"series":{"type":"string"},"title":{"type":"string"},"usual_max":{"$ref":"#/$defs/PageTrendFigure"}},"required":["title","machine","measured","policy","series","runs","kernels","days","p99","usual_max"],"type":"object"},
    PartFigure: {"properties":{"cells":{"items":{"anyOf":[{"$ref":"#/$defs/FigureRange"},{"type":"null"}]},"type":"array"},"change":{"anyOf":[{"$ref":"#/$defs/FigureChange"},{"type":"null"}]},"name":{"type":"string"},"row":{"type":"string"},"unit":{"type":"string"}},"required":["name","unit","row","cells","change"],"type":"object"},
    PingpongParameters: {"properties":{"cpu":{"type":"integer"},"far_cpu":{"type":["integer","null"]},"far_priority":{"type":["integer","null"]},"foreign":{"type":"boolean"},"size":{"type":"integer"},"timeout_ns":{"type":"integer"},"to":{"type":["string","null"]},"transport":{"type":"string"}},"required":["transport","size","cpu","far_cpu","far_priority","to","foreign","timeout_ns"],"type":"object"},
    PlanPart: {"properties":{"figures":{"items":{"$ref":"#/$defs/PartFigure"},"type":"array"},"name":{"type":"string"},"rows":{"items":{"type":"string"},"type":"array"}},"required":["name","rows","figures"],"type":"object"},
    PointKind: {"enum":["sample","interval_max"]},
    Points: {"properties":{"kind":{"$ref":"#/$defs/PointKind"},"latency_ns":{"items":{"type":"integer"},"type":"array"},"of":{"type":"integer"},"t_s":{"items":{"type":"number"},"type":"array"},"thinned":{"type":"string"}},"required":["kind","of","thinned","t_s","latency_ns"],"type":"object"},
    Preemption: {"properties":{"model":{"type":"string"},"source":{"type":"string"}},"required":["model","source"],"type":"object"},
    ProbeRecord: {"anyOf":[{"properties":{"name":{"const":"timer","type":"string"},"parameters":{"$ref":"#/$defs/TimerParameters"}},"required":["name","parameters"],"type":"object"},{"properties":{"name":{"const":"pingpong","type":"string"},"parameters":{"$ref":"#/$defs/PingpongParameters"}},"required":["name","parameters"],"type":"object"},{"properties":{"name":{"const":"receive","type":"string"},"parameters":{"$ref":"#/$defs/ReceiveParameters"}},"required":["name","parameters"],"type":"object"},{"properties":{"name":{"const":"stream","type":"string"},"parameters":{"$ref":"#/$defs/StreamParameters"}},"required":["name","parameters"],"type":"object"},{"properties":{"name":{"const":"noise","type":"string"},"parameters":{"$ref":"#/$defs/NoiseParameters"}},"required":["name","parameters"],"type":"object"},{"properties":{"name":{"const":"bandwidth","type":"string"},"parameters":{"$ref":"#/$defs/BandwidthParameters"}},"required":["name","parameters"],"type":"object"},{"properties":{"name":{"const":"interactive","type":"string"},"parameters":{"$ref":"#/$defs/InteractiveParameters"}},"required":["name","parameters"],"type":"object"},{"properties":{"name":{"const":"inversion","type":"string"},"parameters":{"$ref":"#/$defs/InversionParameters"}},"required":["name","parameters"],"type":"object"},{"properties":{"name":{"const":"irq","type":"string"},"parameters":{"$ref":"#/$defs/IrqParameters"}},"required":["name","parameters"],"type":"object"},{"properties":{"name":{"const":"audio","type":"string"},"parameters":{"$ref":"#/$defs/AudioParameters"}},"required":["name","parameters"],"type":"object"},{"properties":{"name":{"const":"attach","type":"string"},"parameters":{"$ref":"#/$defs/AttachParameters"}},"required":["name","parameters"],"type":"object"},{"properties":{"name":{"const":"fake","type":"string"},"parameters":{"$ref":"#/$defs/FakeParameters"}},"required":["name","parameters"],"type":"object"},{"$ref":"#/$defs/OtherProbe"}]},
    Provenance: {"properties":{"origin":{"$ref":"#/$defs/Origin"},"program":{"type":"string"},"received":{"type":"boolean"},"redacted":{"type":"boolean"},"version":{"type":"string"}},"required":["origin","program","version"],"type":"object"},
    ReceiveParameters: {"properties":{"cpu":{"type":"integer"},"far_cpu":{"type":["integer","null"]},"far_priority":{"type":["integer","null"]},"iface":{"type":["string","null"]},"listen":{"type":["integer","null"]},"rate":{"type":["string","null"]},"sender":{"type":"string"},"size":{"type":["integer","null"]},"wait":{"type":"string"}},"required":["listen","iface","wait","cpu","sender","size","rate","far_cpu","far_priority"],"type":"object"},
    RunParameters: {"properties":{"deadline_ns":{"type":["integer","null"]},"duration_ns":{"type":["integer","null"]},"peak_over_ns":{"type":["integer","null"]},"peaks":{"type":["integer","null"]},"profile_hz":{"type":["integer","null"]},"raw":{"type":"boolean"},"samples":{"type":["integer","null"]},"stop_over_ns":{"type":["integer","null"]},"warmup_ns":{"type":"integer"}},"required":["duration_ns","samples","warmup_ns","stop_over_ns","raw","peaks","peak_over_ns"],"type":"object"},
    RunRecord: {"properties":{"argv":{"items":{"type":"string"},"type":"array"},"attached":{"anyOf":[{"$ref":"#/$defs/AttachRecord"},{"type":"null"}]},"caveats":{"items":{"$ref":"#/$defs/Caveat"},"type":"array"},"conditions":{"anyOf":[{"$ref":"#/$defs/ConditionsRecord"},{"type":"null"}]},"duration_ns":{"type":"integer"},"ended_at":{"type":["string","null"]},"facts":{"$ref":"#/$defs/Facts"},"figures":{"items":{"$ref":"#/$defs/FigureRecord"},"type":"array"},"id":{"type":"string"},"loads":{"items":{"$ref":"#/$defs/LoadRecord"},"type":"array"},"log_interval_ns":{"type":"integer"},"machine":{"anyOf":[{"$ref":"#/$defs/MachineRecord"},{"type":"null"}]},"messages":{"anyOf":[{"$ref":"#/$defs/MessageRecord"},{"type":"null"}]},"name":{"type":"string"},"parameters":{"$ref":"#/$defs/RunParameters"},"probe":{"$ref":"#/$defs/ProbeRecord"},"provenance":{"$ref":"#/$defs/Provenance"},"schema_version":{"type":"integer"},"series":{"items":{"$ref":"#/$defs/SeriesSummary"},"type":"array"},"setup":{"$ref":"#/$defs/SetupRecord"},"start_monotonic_ns":{"type":"integer"},"started_at":{"type":"string"},"status":{"$ref":"#/$defs/Status"},"trace":{"$ref":"#/$defs/TraceRecord"},"validity":{"$ref":"#/$defs/Validity"},"without_host":{"anyOf":[{"$ref":"#/$defs/WithoutHost"},{"type":"null"}]}},"required":["schema_version","id","name","argv","provenance","status","validity","caveats","probe","parameters","loads","setup","trace","facts","started_at","ended_at","duration_ns","log_interval_ns","start_monotonic_ns","machine","conditions","messages","series","figures"],"type":"object"},
    RunTail: {"properties":{"observed_s":{"type":"number"},"series":{"items":{"$ref":"#/$defs/SeriesTail"},"type":"array"}},"required":["observed_s","series"],"type":"object"},
    SampleName: {"enum":["wake_up","round_trip","packet","gap","frame","wait","sample"]},
    SampleWords: {"properties":{"kind":{"$ref":"#/$defs/SampleName"},"many":{"type":"string"},"measure":{"type":"string"},"one":{"type":"string"}},"required":["kind","one","many","measure"],"type":"object"},
    Scheduled: {"properties":{"count":{"type":"integer"},"max":{"type":["integer","null"]},"mean":{"type":["integer","null"]},"percentiles":{"additionalProperties":{"type":"integer"},"type":"object"},"uncertain":{"items":{"type":"string"},"type":"array"}},"required":["count","mean","max","percentiles","uncertain"],"type":"object"},
    SeriesDeadline: {"properties":{"cycles_alone":{"type":"boolean"},"deadline_ns":{"type":"integer"},"from_wakeup":{"type":"boolean"},"longest_burst":{"type":["integer","null"]},"missed":{"type":"integer"},"other_work_ns":{"type":["integer","null"]},"periods":{"type":"integer"},"series":{"type":"string"},"share_met":{"type":["number","null"]},"share_met_high":{"type":["number","null"]},"share_met_low":{"type":["number","null"]},"unseen":{"type":"integer"},"windows":{"items":{"$ref":"#/$defs/MissesInWindow"},"type":"array"},"worst_interval":{"anyOf":[{"$ref":"#/$defs/WorstInterval"},{"type":"null"}]}},"required":["series","deadline_ns","periods","missed","unseen","share_met","share_met_low","share_met_high","longest_burst","windows","worst_interval"],"type":"object"},
    SeriesShare: {"properties":{"ns":{"type":"integer"},"series":{"type":"string"}},"required":["series","ns"],"type":"object"},
    SeriesSummary: {"properties":{"above":{"type":"integer"},"count":{"type":"integer"},"cpu":{"type":["integer","null"]},"early":{"type":"integer"},"max":{"type":["integer","null"]},"mean":{"type":["integer","null"]},"min":{"type":["integer","null"]},"missed":{"type":["integer","null"]},"name":{"type":"string"},"percentiles":{"additionalProperties":{"type":"integer"},"type":"object"},"period_ns":{"type":["integer","null"]},"scheduled":{"anyOf":[{"$ref":"#/$defs/Scheduled"},{"type":"null"}]},"stage":{"type":["string","null"]},"stage_of":{"type":["string","null"]},"stddev":{"type":["integer","null"]},"thread_of":{"type":["string","null"]},"uncertain":{"items":{"type":"string"},"type":"array"},"unit":{"type":"string"}},"required":["name","cpu","period_ns","stage_of","stage","unit","count","missed","early","above","min","mean","stddev","max","percentiles","uncertain","scheduled"],"type":"object"},
    SeriesTail: {"properties":{"max_ns":{"type":"integer"},"model":{"anyOf":[{"$ref":"#/$defs/TailModel"},{"type":"null"}]},"name":{"type":"string"},"pieces":{"type":"string"},"rarer_than_s":{"type":"number"},"refusal":{"type":["string","null"]}},"required":["name","max_ns","rarer_than_s","pieces","model","refusal"],"type":"object"},
    SeriesWithoutHost: {"properties":{"missed_removed":{"type":"integer"},"name":{"type":"string"},"removed_ns":{"type":"integer"},"samples":{"type":"integer"}},"required":["name","samples","removed_ns","missed_removed"],"type":"object"},
    SetupRecord: {"properties":{"asked":{"anyOf":[{"$ref":"#/$defs/AskedSetup"},{"type":"null"}]},"found":{"$ref":"#/$defs/FoundSetup"}},"required":["asked","found"],"type":"object"},
    ShiftBasis: {"enum":["samples","runs"]},
    ShiftPoint: {"properties":{"a_ns":{"type":"number"},"b_ns":{"type":"number"},"basis":{"$ref":"#/$defs/ShiftBasis"},"high":{"type":["number","null"]},"low":{"type":["number","null"]},"percentile":{"type":"string"},"ratio":{"type":"number"},"series":{"type":["string","null"]}},"required":["series","percentile","a_ns","b_ns","ratio","low","high","basis"],"type":"object"},
    StagesOf: {"properties":{"dispatch":{"type":"integer"},"handler":{"type":"integer"},"irq":{"type":"integer"},"softirq":{"type":"integer"},"user":{"type":"integer"}},"required":["irq","softirq","handler","dispatch","user"],"type":"object"},
    Status: {"enum":["running","complete","interrupted","stopped_over","crashed","imported"]},
    StreamParameters: {"properties":{"both_ways":{"type":"boolean"},"cpu":{"type":"integer"},"far_cpu":{"type":["integer","null"]},"far_priority":{"type":["integer","null"]},"far_wait":{"type":["string","null"]},"group":{"type":["string","null"]},"late_over_ns":{"type":"integer"},"rate_per_s":{"type":"number"},"receivers":{"type":["integer","null"]},"size":{"type":"integer"},"to":{"type":["string","null"]},"transport":{"type":"string"},"wait":{"type":"string"}},"required":["transport","size","rate_per_s","both_ways","wait","far_wait","late_over_ns","cpu","far_cpu","far_priority","to","group","receivers"],"type":"object"},
    SymbolShare: {"properties":{"module":{"type":"string"},"name":{"type":"string"},"own":{"type":"number"},"samples":{"type":"integer"},"total":{"type":"number"}},"required":["name","module","samples","own","total"],"type":"object"},
    TailLevel: {"properties":{"high_ns":{"type":["integer","null"]},"is_extrapolation":{"type":"boolean"},"level_ns":{"type":"integer"},"low_ns":{"type":"integer"},"period_s":{"type":"number"}},"required":["period_s","level_ns","low_ns","high_ns","is_extrapolation"],"type":"object"},
    TailModel: {"properties":{"clusters":{"type":"integer"},"fit_probability":{"type":"number"},"levels":{"items":{"$ref":"#/$defs/TailLevel"},"type":"array"},"shape":{"type":"number"},"shape_high":{"type":"number"},"shape_low":{"type":"number"},"threshold_ns":{"type":"integer"}},"required":["threshold_ns","clusters","fit_probability","shape","shape_low","shape_high","levels"],"type":"object"},
    TaskNameShare: {"properties":{"kernel":{"type":"number"},"name":{"type":"string"},"samples":{"type":"integer"},"share":{"type":"number"},"tasks":{"type":"integer"},"user":{"type":"number"}},"required":["name","tasks","samples","share","user","kernel"],"type":"object"},
    ThreadDeadline: {"properties":{"deadline_ns":{"type":"integer"},"name":{"type":"string"}},"required":["name","deadline_ns"],"type":"object"},
    ThreadUse: {"properties":{"cpu_ns":{"type":"integer"},"involuntary_switches":{"type":"integer"},"major_faults":{"type":"integer"},"migrations":{"type":["integer","null"]},"minor_faults":{"type":"integer"},"series":{"type":"string"},"turns":{"type":["integer","null"]},"voluntary_switches":{"type":"integer"}},"required":["series","voluntary_switches","involuntary_switches","minor_faults","major_faults","migrations","cpu_ns"],"type":"object"},
    TimerParameters: {"properties":{"cpus":{"type":"string"},"distance_ns":{"type":"integer"},"interval_ns":{"type":"integer"},"interval_step_ns":{"type":["integer","null"]},"loops_per_ms":{"type":["integer","null"]},"priority_step":{"type":"integer"},"threads_per_cpu":{"type":"integer"},"total_threads":{"type":["integer","null"]},"wake":{"type":"string"},"work_ns":{"type":["integer","null"]}},"required":["wake","interval_ns","distance_ns","cpus","threads_per_cpu","priority_step"],"type":"object"},
    TraceBy: {"enum":["bpf","tracefs"]},
    TraceCost: {"properties":{"added_cpu_percent":{"type":"number"},"added_median_ns":{"type":"integer"},"added_range_ns":{"prefixItems":[{"type":"integer"},{"type":"integer"}],"type":"array"},"cpu_per_wakeup_ns":{"prefixItems":[{"type":"integer"},{"type":"integer"}],"type":"array"},"median_with_ns":{"type":"integer"},"median_without_ns":{"type":"integer"},"pairs":{"type":"integer"},"slice_ns":{"type":"integer"}},"required":["pairs","slice_ns","median_without_ns","median_with_ns","added_median_ns","added_range_ns","cpu_per_wakeup_ns","added_cpu_percent"],"type":"object"},
    TraceMode: {"enum":["auto","off","stages","peaks"]},
    TraceRecord: {"properties":{"asked":{"$ref":"#/$defs/TraceMode"},"blamed":{"type":"integer"},"by":{"anyOf":[{"$ref":"#/$defs/TraceBy"},{"type":"null"}]},"cost":{"anyOf":[{"$ref":"#/$defs/TraceCost"},{"type":"null"}]},"found":{"$ref":"#/$defs/TraceMode"},"known_cost":{"anyOf":[{"$ref":"#/$defs/KnownCost"},{"type":"null"}]},"lost_events":{"type":"integer"},"lost_on":{"items":{"$ref":"#/$defs/LostEvents"},"type":"array"},"missing":{"items":{"$ref":"#/$defs/MissingTracepoint"},"type":"array"},"passed_over":{"type":"integer"},"peaks_left_out":{"type":"integer"},"threshold_ns":{"type":"integer"},"unmatched":{"type":"integer"},"why_not":{"type":["string","null"]},"why_not_bpf":{"type":["string","null"]}},"required":["asked","found","why_not","missing","unmatched","lost_events","blamed","passed_over","threshold_ns","cost"],"type":"object"},
    TrendEvent: {"properties":{"cause":{"type":"string"},"day":{"type":"string"},"is_worse":{"type":"boolean"},"kernel":{"type":"string"},"lines":{"items":{"type":"string"},"type":"array"},"size":{"type":"number"},"title":{"type":"string"}},"required":["day","is_worse","title","lines","kernel","cause","size"],"type":"object"},
    Validity: {"enum":["valid","weakened","invalid"]},
    Vocabulary: {"properties":{"causes":{"additionalProperties":{"type":"string"},"type":"object"},"samples":{"$ref":"#/$defs/SampleWords"},"series":{"additionalProperties":{"type":"string"},"type":"object"}},"required":["samples","causes","series"],"type":"object"},
    WayOf: {"properties":{"ns":{"type":"integer"},"stages":{"anyOf":[{"$ref":"#/$defs/MessageStages"},{"type":"null"}]},"way":{"type":"string"}},"required":["way","ns","stages"],"type":"object"},
    WithoutHost: {"properties":{"counted_ns":{"type":["integer","null"]},"judged_over_ns":{"type":"integer"},"left_out":{"items":{"type":"string"},"type":"array"},"lost_events":{"type":"integer"},"missed_removed":{"type":"integer"},"not_moved":{"type":"integer"},"passed_over":{"type":"integer"},"removed_ns":{"type":"integer"},"samples":{"type":"integer"},"series":{"items":{"$ref":"#/$defs/SeriesWithoutHost"},"type":"array"},"unmatched":{"type":"integer"}},"required":["samples","removed_ns","missed_removed","series","judged_over_ns","passed_over","unmatched","lost_events","not_moved","counted_ns","left_out"],"type":"object"},
    WorstInterval: {"properties":{"missed":{"type":"integer"},"samples":{"type":"integer"},"start_s":{"type":"number"}},"required":["start_s","samples","missed"],"type":"object"},
  },
  properties: {"ab":{"anyOf":[{"$ref":"#/$defs/PageAb"},{"type":"null"}]},"comparisons":{"items":{"$ref":"#/$defs/PageComparison"},"type":"array"},"latency_edges_ns":{"items":{"type":"integer"},"type":"array"},"made_at":{"type":"string"},"matrix":{"anyOf":[{"$ref":"#/$defs/PageMatrix"},{"type":"null"}]},"page_version":{"type":"integer"},"runs":{"items":{"$ref":"#/$defs/PageRun"},"type":"array"},"tardy_version":{"type":"string"},"trend":{"anyOf":[{"$ref":"#/$defs/PageTrend"},{"type":"null"}]},"words":{"$ref":"#/$defs/Vocabulary"}},
  required: ["page_version","tardy_version","made_at","words","latency_edges_ns","runs","comparisons","matrix","ab","trend"],
  type: "object",
};
