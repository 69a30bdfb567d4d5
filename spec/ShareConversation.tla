------------------------- MODULE ShareConversation -------------------------
(***************************************************************************)
(* Are conversations with a share partition behaviours of SharePartition?  *)
(*                                                                         *)
(* A conversation is what Kafka's own class was asked, and the state that  *)
(* it was in after each answer.  Each becomes a sequence of steps here: an *)
(* operation of the specification with what is known of it, and the state  *)
(* that was seen, or <<>> where none was.  What is not known is tried.     *)
(*                                                                         *)
(* A conversation is allowed if some behaviour takes all of its steps.     *)
(* The module Conversations is made by tests/tla from the recordings.      *)
(***************************************************************************)
EXTENDS SharePartition, TLC, Conversations

VARIABLES
    number,  \* which of Conversations
    taken,   \* how many of its steps
    p        \* the leader's state

variables == <<number, taken, p>>

Steps == Conversations[number]
Step  == Steps[taken + 1]

(* The state that was seen: the fields of the leader, and of its records   *)
(* what can be seen.  A lock that has lapsed shows only while a write is   *)
(* pending.                                                                *)
Visible(r) == [state |-> r.state, count |-> r.count, owner |-> r.owner, pending |-> r.write # 0,
               lapsed |-> r.write # 0 /\ r.lapsed, settled |-> r.before = Settled]

IsSeen(q, seen) ==
    \/ seen = <<>>
    \/ /\ q.spso = seen.spso /\ q.speo = seen.speo /\ q.complete = seen.complete
       /\ q.find = seen.find /\ q.gap = seen.gap /\ q.batches = seen.batches /\ q.letters = seen.letters
       /\ \A o \in InFlight(q) : Visible(q.records[o]) = seen.records[o]

AfterAcknowledge(q, step) ==
    [o \in {x \in DOMAIN step.types : x >= q.spso /\ x \in InFlight(q)} |-> AfterType(q, o, step.types[o])]

AfterRelease(q, step) == [o \in Owned(q, step.member) |-> GivenBack(q, o)]

(* A write that was sent has the start offset, the count and the records   *)
(* of the state in which it was sent.                                      *)
IsSent(q, sent) ==
    /\ q.spso = sent.start /\ q.complete = sent.complete
    /\ \A o \in DOMAIN sent.records : o \in InFlight(q) /\ sent.records[o] =
           [state |-> q.records[o].state, count |-> q.records[o].count]

Sent(q, step) == IF IsSent(q, step.sent) THEN {q} ELSE {}

Began(step, changes) ==
    IF DOMAIN changes \subseteq Owned(p, step.member) /\ DOMAIN changes = DOMAIN step.sent.records
    THEN Sent(Begin(p, changes, step.write), step) ELSE {}

Delivered(step) ==
    {t \in {{}} \union Takeable(p, step.from, step.fetched) : t \ Covered(step.aborted) = step.result}

Expirable(step) ==
    /\ \A o \in step.offsets : o \in InFlight(p) /\ p.records[o].state = "Acquired"
    /\ \E b \in p.batches : step.offsets \subseteq Offsets(b)

(* The states that may follow p by a step. *)
After(step) ==
    CASE step.op = "open"        -> {Empty(0, step.settings)}
      [] step.op = "load"        -> {Loaded(step.start, step.batches, step.stored, p)}
      [] step.op = "configure"   -> {[p EXCEPT !.limit = step.settings.limit, !.locks = step.settings.locks,
                                               !.queue = step.settings.queue]}
      [] step.op = "nothing"     -> {p}
      [] step.op = "next offset" -> IF NextFetchOffset(p) = step.result THEN {Searched(p)} ELSE {}
      [] step.op = "can acquire" -> IF CanAcquire(p) = step.result THEN {Searched(p)} ELSE {}
      [] step.op = "acquire"     -> {Acquire(p, step.member, step.from, step.fetched, step.aborted, t, step.rest,
                                             step.cuts) : t \in Delivered(step)}
      [] step.op = "acknowledge" -> Began(step, AfterAcknowledge(p, step))
      [] step.op = "release"     -> Began(step, AfterRelease(p, step))
      [] step.op = "commit"      -> Commit(p, step.write)
      [] step.op = "roll back"   -> {RollBack(p, step.write)}
      [] step.op = "expire"      -> IF Expirable(step) THEN Sent(Expire(p, step.offsets), step) ELSE {}
      [] step.op = "settle"      -> Settle(p, step.letters)
      [] step.op = "letters"     -> IF step.offsets \subseteq p.letters
                                    THEN Sent(DeadLettered(p, step.offsets), step) ELSE {}
      [] step.op = "lapse"       -> {Lapse(p, step.offsets)}
      [] step.op = "split"       -> {Split(p, step.offsets)}
      [] step.op = "log start"   -> {MoveLogStart(p, step.offset)}

Init == /\ number \in DOMAIN Conversations
        /\ taken = 0
        /\ p = Empty(0, [limit |-> 5, locks |-> 2000, queue |-> FALSE])

Go == /\ taken < Len(Steps)
      /\ p' \in {q \in After(Step) : IsSeen(q, Step.seen)}
      /\ taken' = taken + 1
      /\ number' = number

Spec == Init /\ [][Go]_variables

(* Printed for each conversation that is allowed, read by tests/tla. *)
Report == taken = Len(Steps) => PrintT(<<"allowed", number>>)

(* How far the others come. *)
Furthest == PrintT(<<"step", number, taken>>)
=============================================================================
