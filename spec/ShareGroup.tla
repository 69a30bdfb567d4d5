----------------------------- MODULE ShareGroup -----------------------------
(***************************************************************************)
(* One topic partition, consumed by the members of a share group.          *)
(*                                                                         *)
(* Its leader does what SharePartition says.  Around it are the log, whose *)
(* beginning may be deleted and whose batches may be compacted away; the   *)
(* share coordinator, which stores what the leader writes; members; and    *)
(* what goes wrong: writes that fail or come late, locks that expire,      *)
(* leaders that are replaced.                                              *)
(*                                                                         *)
(* Below Next stands what must hold.  With Quirks = {} all of it does.     *)
(* With the bugs of Kafka switched on, TLC finds how it breaks: tests/tla  *)
(* has a model for each.                                                   *)
(***************************************************************************)
EXTENDS SharePartition, TLC

CONSTANTS
    Members,     \* ids
    Log,         \* the batches of the log in the beginning; what lies between them was never there
    Aborted,     \* those of aborted transactions; groups that read what is committed do not see them
    Limit,       \* share.delivery.count.limit
    Locks,       \* share.partition.max.record.locks
    Queue,       \* whether the group has a dead-letter queue
    Stored,      \* what is stored in the beginning, see `store'
    Types,       \* how members acknowledge: some of "accept", "release", "reject"
    Modes,       \* share.acquire.mode: some of "batch_optimized", "record_limit"
    Writes,      \* the names of those that may be under way at once
    Failures,    \* so many writes may fail,
    Failovers,   \* so often may another leader take over,
    Deletions,   \* so often may the log start move,
    Compactions, \* so many batches may be compacted away,
    Switches     \* and if it is 1, the group reads everything until it is switched to what is committed

VARIABLES
    p,         \* the leader's state, of SharePartition
    log,       \* the batches that the log has
    logStart,
    store,     \* what the share coordinator has: a start offset, or -1, and state and count of records above
    writes,    \* what was sent and is not answered, by name
    left,      \* what may still go wrong: how many of the five above
    confirmed, \* records whose acceptance was confirmed to a member
    finished   \* records that were accepted, rejected, or delivered as often as they may be

variables == <<p, log, logStart, store, writes, left, confirmed, finished>>

-----------------------------------------------------------------------------
(***************************************************************************)
(* The share coordinator (rule 15).  Of the same record the higher         *)
(* delivery count wins, and then the higher state.  Up to Kafka 4.3 a      *)
(* write that is late may take the start offset back: F3.                  *)
(***************************************************************************)

Rank(state) == CASE state = "Available" -> 0 [] state = "Acknowledged" -> 2 [] state = "Archiving" -> 3
                 [] state = "Archived"  -> 4

IsNewer(a, b) == a.count > b.count \/ (a.count = b.count /\ Rank(a.state) > Rank(b.state))

Put(stored, write) ==
    LET start == IF On("F3") THEN write.start ELSE Max({stored.start, write.start})
        had   == AtOrAbove(DOMAIN stored.records, start)
        comes == AtOrAbove(DOMAIN write.records, start)
    IN  [start |-> start,
         records |-> [o \in had \union comes |->
                        IF o \notin had \/ (o \in comes /\ IsNewer(write.records[o], stored.records[o]))
                        THEN write.records[o] ELSE stored.records[o]]]

(* A new leader reads maximal runs of records that are alike. *)
Load(stored) ==
    LET start   == IF stored.start = -1 THEN logStart ELSE stored.start
        covered == DOMAIN stored.records
        cuts    == {o \in covered : o - 1 \in covered /\ stored.records[o] # stored.records[o - 1]}
    IN  Loaded(start, Runs(covered, cuts), stored.records, [limit |-> Limit, locks |-> Locks, queue |-> Queue])

-----------------------------------------------------------------------------
(* Writes *)

IsSent(n) == n \in DOMAIN writes
Unused    == Writes \ DOMAIN writes
AnyUnused == CHOOSE n \in Unused : TRUE    \* names differ in nothing

Send(q, n, offsets, of) ==
    writes' = (n :> [start |-> q.spso, records |-> Entries(q, offsets), of |-> of, stored |-> FALSE]) @@ writes

Forget(n) == writes' = [k \in DOMAIN writes \ {n} |-> writes[k]]

Stands(n) == writes[n].of \in {"lock", "letter"}   \* what it carries, whatever becomes of it

Letters(n) == {o \in DOMAIN writes[n].records : writes[n].records[o].state = "Archiving"}

(* It reaches the share coordinator, *)
Store(n) ==
    /\ IsSent(n) /\ ~writes[n].stored
    /\ store' = Put(store, writes[n])
    /\ writes' = [writes EXCEPT ![n].stored = TRUE]
    /\ UNCHANGED <<p, log, logStart, left, confirmed, finished>>

(* is answered, *)
Confirm(n) ==
    /\ IsSent(n) /\ writes[n].stored
    /\ p' \in IF Stands(n) THEN Settle(p, Letters(n)) ELSE Commit(p, n)
    /\ confirmed' = confirmed \union (IF writes[n].of = "accept" THEN DOMAIN writes[n].records ELSE {})
    /\ Forget(n)
    /\ UNCHANGED <<log, logStart, store, left, finished>>

(* or fails, whether it was stored or not. *)
Fail(n) ==
    /\ IsSent(n) /\ left.failures > 0
    /\ left' = [left EXCEPT !.failures = @ - 1]
    /\ p' \in IF Stands(n) THEN Settle(p, Letters(n)) ELSE {RollBack(p, n)}
    /\ Forget(n)
    /\ UNCHANGED <<log, logStart, store, confirmed, finished>>

-----------------------------------------------------------------------------
(* Members *)

Readable(from) == {b \in log : b[2] >= from}

Fetches(from) == {{b \in Readable(from) : b[2] <= c[2]} : c \in Readable(from)}   \* some of them, from the first one on

Hidden == IF left.switches = 0 THEN Aborted ELSE {}

Fetched(member, q) ==   \* the states in which a fetch may leave the leader
    LET from == NextFetchOffset(q)
        some(fetched) ==
            LET takeable == Takeable(Searched(q), from, fetched)
                rest(mode, taken) == IF mode = "record_limit" THEN Rest(Searched(q), from, fetched, taken) ELSE {}
            IN  {Acquire(Searched(q), member, from, fetched, Hidden \intersect fetched, taken, rest(mode, taken), cuts) :
                    mode \in Modes,
                    taken \in (IF takeable = {} THEN {{}} ELSE takeable),
                    cuts \in {{}, {b[1] : b \in fetched}}}
    IN  IF ~CanAcquire(q) THEN {}
        ELSE IF from < logStart THEN {MoveLogStart(Searched(q), logStart)}   \* OFFSET_OUT_OF_RANGE says where it is
        ELSE UNION {some(fetched) : fetched \in Fetches(from)}

Fetch(member) ==
    /\ p' \in Fetched(member, p) \ {p}
    /\ UNCHANGED <<log, logStart, store, writes, left, confirmed, finished>>

Ended(changes) == {o \in DOMAIN changes : changes[o] # "Available"}

Request(changes, of) ==
    /\ changes # [o \in {} |-> ""] /\ Unused # {}
    /\ LET n == AnyUnused
           q == Begin(p, changes, n)
       IN  p' = q /\ Send(q, n, DOMAIN changes, of)
    /\ finished' = finished \union Ended(changes)
    /\ UNCHANGED <<log, logStart, store, left, confirmed>>

Acknowledge(member) ==   \* all that it has, or one record
    \E type \in Types :
        LET owned == AtOrAbove(Owned(p, member), p.spso)
        IN  \E some \in {owned} \union {{o} : o \in owned} :
                Request([o \in some |-> AfterType(p, o, type)], type)

Close(member) == Request([o \in Owned(p, member) |-> GivenBack(p, o)], "close")

Acquired == {o \in InFlight(p) : p.records[o].state = "Acquired"}

Parts(offsets) ==        \* those of a batch in flight, or one of them
    ({offsets \intersect Offsets(b) : b \in p.batches} \union {{o} : o \in offsets}) \ {{}}

LockExpires ==           \* of what is acquired: the lock of a batch, or of one record
    /\ Unused # {}
    /\ \E some \in Parts(Acquired) :
          LET q == Expire(p, some)
          IN  /\ p' = q
              /\ Send(q, AnyUnused, some, "lock")
              /\ finished' = finished \union {o \in some : q.records[o].state # "Available"}
    /\ UNCHANGED <<log, logStart, store, left, confirmed>>

LockLapses ==            \* of what waits for its write, which matters if that fails
    /\ left.failures > 0
    /\ \E n \in DOMAIN writes : LET open == {o \in Pending(p, n) : p.records[o].before.state = "Acquired"}
                                IN  open # {} /\ p' = Lapse(p, open) /\ p' # p
    /\ UNCHANGED <<log, logStart, store, writes, left, confirmed, finished>>

QueueAnswers ==          \* it has written some dead letters, or has failed
    /\ Unused # {}
    /\ \E some \in Parts(p.letters) :
          LET q == DeadLettered(p, some)
          IN  p' = q /\ Send(q, AnyUnused, some, "letter")
    /\ UNCHANGED <<log, logStart, store, left, confirmed, finished>>

-----------------------------------------------------------------------------
(* What else happens *)

DeleteRecords ==
    /\ left.deletions > 0
    /\ \E start \in (logStart + 1)..(Max(Covered(Log)) + 1) :
          /\ logStart' = start
          /\ log' = Readable(start)
    /\ left' = [left EXCEPT !.deletions = @ - 1]
    /\ UNCHANGED <<p, store, writes, confirmed, finished>>

Compact ==
    /\ left.compactions > 0
    /\ \E b \in log : log' = log \ {b}
    /\ left' = [left EXCEPT !.compactions = @ - 1]
    /\ UNCHANGED <<p, logStart, store, writes, confirmed, finished>>

Switch ==     \* share.isolation.level is read_committed now
    /\ left.switches > 0
    /\ left' = [left EXCEPT !.switches = 0]
    /\ UNCHANGED <<p, log, logStart, store, writes, confirmed, finished>>

FailOver ==   \* nobody hears of the writes that are under way any more
    /\ left.failovers > 0
    /\ left' = [left EXCEPT !.failovers = @ - 1]
    /\ p' = Load(store)
    /\ writes' = <<>>
    /\ UNCHANGED <<log, logStart, store, confirmed, finished>>

Init ==
    /\ log = Log /\ logStart = Min({b[1] : b \in Log} \union {0}) /\ store = Stored
    /\ p = Load(Stored)
    /\ writes = <<>> /\ confirmed = {} /\ finished = {o \in DOMAIN Stored.records : Stored.records[o].state # "Available"}
    /\ left = [failures |-> Failures, failovers |-> Failovers, deletions |-> Deletions, compactions |-> Compactions,
             switches |-> Switches]

Next ==
    \/ \E m \in Members : Fetch(m) \/ Acknowledge(m) \/ Close(m)
    \/ LockExpires \/ LockLapses \/ QueueAnswers
    \/ \E n \in Writes : Store(n) \/ Confirm(n) \/ Fail(n)
    \/ DeleteRecords \/ Compact \/ Switch \/ FailOver

Spec == Init /\ [][Next]_variables

(***************************************************************************)
(* What goes on by itself, in two parts.  Weak fairness is enough, as each *)
(* stays possible until it happens or is needless.                         *)
(*                                                                         *)
(*   Fetch         a client polls, and a broker serves a waiting fetch as  *)
(*                 soon as it can                                          *)
(*   GoOn          time passes, and those who are asked answer:            *)
(*     LockExpires   a member need not acknowledge                         *)
(*     Store         the share coordinator carries out what it is sent     *)
(*     Confirm       and answers                                           *)
(*     QueueAnswers  the dead-letter queue does, if only that it failed    *)
(*                                                                         *)
(* The four are fair together, not each by itself: that asks for less, and *)
(* TLC's work doubles with each.  None is passed over for ever, for there  *)
(* are only so many deliveries.  Nothing else is fair.  Members may never  *)
(* acknowledge and never leave.  What goes on only after a misfortune, as  *)
(* another leader or a deletion, has stalled.                              *)
(*                                                                         *)
(* Fair is WF_variables(Fetch(m)) for each member, and WF_variables(GoOn), *)
(* written out.  TLC takes far longer if it has to find whether an action  *)
(* is ENABLED.                                                             *)
(***************************************************************************)
GoOn == LockExpires \/ QueueAnswers \/ \E n \in Writes : Store(n) \/ Confirm(n)

CanFetch(member) == Fetched(member, p) \ {p} # {}

IsQuiet == writes = <<>> /\ Acquired = {} /\ p.letters = {}   \* nobody has anything, and nothing is waited for

Fair == /\ \A m \in Members : []<>~CanFetch(m) \/ []<><<Fetch(m)>>_variables
        /\ []<>IsQuiet \/ []<><<GoOn>>_variables

FairSpec == Spec /\ Fair

-----------------------------------------------------------------------------
(* What must hold *)

UpToTheEnd == 0 .. Max(Covered(Log))   \* also what the log does not have, between its batches: it is delivered as a gap

IsStore(s) ==
    /\ s.start \in Nat \union {-1}
    /\ \A o \in DOMAIN s.records : o \in UpToTheEnd /\ s.records[o].count \in Nat /\ Rank(s.records[o].state) \in 0..4

TypeOK ==
    /\ IsSharePartition(p)
    /\ \A o \in InFlight(p) : /\ p.records[o].owner \in Members \union {Nobody}
                             /\ p.records[o].write \in Writes \union {0}
    /\ log \subseteq Log /\ logStart \in Nat
    /\ IsStore(store)
    /\ DOMAIN writes \subseteq Writes
    /\ \A n \in DOMAIN writes :
          /\ IsStore([start |-> writes[n].start, records |-> writes[n].records])
          /\ writes[n].stored \in BOOLEAN /\ writes[n].of \in Types \union {"close", "lock", "letter"}
    /\ \A few \in {left.failures, left.failovers, left.deletions, left.compactions, left.switches} : few \in Nat
    /\ confirmed \subseteq finished /\ finished \subseteq UpToTheEnd

Newly(q, state, o) ==   \* is record o in that state now, in a step that leaves the leader as q?
    /\ o \in InFlight(q) /\ q.records[o].state = state
    /\ ~(o \in InFlight(p) /\ p.records[o].state = state)

(* What was accepted, and confirmed, is never delivered again. *)
AcceptedIsFinal == [][\A o \in confirmed : ~Newly(p', "Acquired", o)]_variables

(* No record is delivered more often than the limit says. *)
DeliveryLimit == \A o \in InFlight(p) : p.records[o].count <= Limit

(* The SPSO passes a record only when it is finished, or gone. *)
NothingIsLost ==
    \A o \in Covered(log \ Aborted) : (logStart <= o /\ o < p.spso) => o \in finished

(* A leader's SPSO never moves back, and nothing below it is delivered. *)
StartMovesOn == [][left'.failovers = left.failovers => p'.spso >= p.spso]_variables
NothingBelowStart ==   \* by a fetch, which leaves the writes as they are; a write that fails may give records back
    [][writes' = writes => \A o \in InFlight(p') : Newly(p', "Acquired", o) => o >= p.spso]_variables

(* The delivery complete count counts the terminal records from the SPSO on. *)
CompleteCount == p.complete = Cardinality({o \in AtOrAbove(InFlight(p), p.spso) : IsTerminal(p.records[o])})

(* The dead-letter queue is asked before a record is archived that is on   *)
(* its way there, and each of these is: by a write that is under way, or   *)
(* because the queue has it.                                               *)
LettersComeFirst == [][\A o \in InFlight(p) : p.records[o].state = "Archiving" /\ Newly(p', "Archived", o)
                                             => o \in p.letters]_variables
LettersAreUnderWay ==
    \A o \in InFlight(p) : p.records[o].state = "Archiving" => o \in p.letters \union UNION {Letters(n) : n \in DOMAIN writes}

(* A share partition of which nobody holds anything, and that waits for    *)
(* nothing, is done with the log, or a fetch brings it on.                 *)
Undone == {o \in Covered(log \ Aborted) : /\ o >= p.spso /\ o >= logStart
                                          /\ ~(o \in InFlight(p) /\ IsTerminal(p.records[o]))}

Same(q, r) == [q EXCEPT !.find = TRUE] = [r EXCEPT !.find = TRUE]

NeverStalls ==
    IsQuiet /\ Undone # {} => \E m \in Members : \E q \in Fetched(m, p) : ~Same(q, p)

(* Of FairSpec: what is acquired is so no more some day, and in the end    *)
(* nothing of the log is left to do.                                       *)
IsHeld(o) == o \in InFlight(p) /\ p.records[o].state = "Acquired"

LocksEnd == \A o \in Covered(Log) : IsHeld(o) ~> ~IsHeld(o)

AllIsDone == <>[](Undone = {})

(* What Fair has in the place of ENABLED is that. *)
FairIsWeaklyFair == (\A m \in Members : CanFetch(m) = ENABLED Fetch(m)) /\ ~IsQuiet = ENABLED GoOn
=============================================================================
