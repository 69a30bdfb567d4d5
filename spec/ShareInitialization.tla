------------------------ MODULE ShareInitialization ------------------------
(***************************************************************************)
(* The group coordinator's part for one topic: it has the share            *)
(* coordinator initialize the state of each partition, and says where the  *)
(* group begins (docs/groups.md, 8).                                       *)
(*                                                                         *)
(* Partitions that are there when the group first asks for the topic begin *)
(* where share.auto.offset.reset says.  Those that are added later begin   *)
(* at 0: what is written to them before the group knows of them must not   *)
(* be missed.                                                              *)
(*                                                                         *)
(* A request may be lost.  After a while the next heartbeat asks again.    *)
(* One that is answered with an error is taken back.                       *)
(***************************************************************************)
EXTENDS Integers, FiniteSets, TLC

CONSTANTS
    First,      \* so many partitions has the topic in the beginning,
    Added,      \* so many may be added,
    Losses,     \* and so many requests may fail
    Quirks      \* "B26"

ASSUME Quirks \subseteq {"B26"}

VARIABLES
    partitions,  \* of the topic
    asked,       \* where they begin, as it was asked for first
    pending,     \* those that are being initialized, of which
    recent,      \* these were asked for not long ago
    initialized,
    requests,    \* what was sent and not answered: start offsets by partition
    stored,      \* where they begin, as the share coordinator knows it
    losses       \* so many more may come

variables == <<partitions, asked, pending, recent, initialized, requests, stored, losses>>

Reset == -1      \* the start offset that says: where share.auto.offset.reset says
Early == 1..First

On(bug) == bug \in Quirks

(* What is asked for again begins where it was to begin the first time.    *)
(* Kafka 4.4 has no memory of that: B26.                                   *)
Start(p) ==
    IF On("B26") THEN (IF pending \union initialized = {} THEN Reset ELSE 0)
    ELSE IF p \in DOMAIN asked THEN asked[p] ELSE IF asked = <<>> THEN Reset ELSE 0

Heartbeat ==
    LET missing == partitions \ (initialized \union recent)
        request == [p \in missing |-> Start(p)]
    IN  /\ missing # {}
        /\ requests' = requests \union {request}
        /\ asked' = asked @@ request
        /\ pending' = pending \union missing
        /\ recent' = recent \union missing
        /\ UNCHANGED <<partitions, initialized, stored, losses>>

TimePasses ==   \* group.share.initialize.retry.interval.ms
    /\ recent # {}
    /\ recent' = {}
    /\ UNCHANGED <<partitions, asked, pending, initialized, requests, stored, losses>>

CarryOut == \E r \in requests :   \* and answer; what comes again changes nothing, but see C2 of ShareCoordinator
    /\ stored' = stored @@ r
    /\ requests' = requests \ {r}
    /\ pending' = pending \ DOMAIN r
    /\ recent' = recent \ DOMAIN r
    /\ initialized' = initialized \union DOMAIN r
    /\ UNCHANGED <<partitions, asked, losses>>

Fail == \E r \in requests : \E heard \in BOOLEAN :   \* it is lost, or answered with an error
    /\ losses > 0
    /\ losses' = losses - 1
    /\ requests' = requests \ {r}
    /\ pending' = IF heard THEN pending \ DOMAIN r ELSE pending
    /\ recent' = IF heard THEN recent \ DOMAIN r ELSE recent
    /\ UNCHANGED <<partitions, asked, initialized, stored>>

Add ==
    /\ Cardinality(partitions) < First + Added
    /\ partitions' = partitions \union {Cardinality(partitions) + 1}
    /\ asked # <<>>     \* before, the group does not know the topic
    /\ UNCHANGED <<asked, pending, recent, initialized, requests, stored, losses>>

Init ==
    /\ partitions = Early /\ losses = Losses
    /\ asked = <<>> /\ stored = <<>>
    /\ pending = {} /\ recent = {} /\ initialized = {} /\ requests = {}

Next == Heartbeat \/ TimePasses \/ CarryOut \/ Fail \/ Add

Spec == Init /\ [][Next]_variables

FairSpec == Spec /\ WF_variables(Heartbeat) /\ WF_variables(TimePasses) /\ WF_variables(CarryOut)

-----------------------------------------------------------------------------
(* What must hold *)

TypeOK ==
    /\ partitions = 1..Cardinality(partitions) /\ losses \in Nat
    /\ recent \subseteq pending /\ pending \union initialized \subseteq DOMAIN asked
    /\ DOMAIN stored = initialized /\ DOMAIN asked \subseteq partitions
    /\ \A r \in requests : DOMAIN r \subseteq partitions
    /\ \A p \in DOMAIN stored : stored[p] \in {Reset, 0}

ResetDecides      == \A p \in initialized \intersect Early : stored[p] = Reset
AddedAreNotMissed == \A p \in initialized \ Early : stored[p] = 0

(* Of FairSpec: some day, all of them have state. *)
AllHaveState == <>[](initialized = partitions)
=============================================================================
