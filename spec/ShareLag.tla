------------------------------ MODULE ShareLag ------------------------------
(***************************************************************************)
(* The lag of a share group that an administrator sees (KIP-1226): how far *)
(* the start offset that is stored lies before the end of the log, less    *)
(* the delivery complete count that is stored with it (rule 20.4).         *)
(*                                                                         *)
(* Each write carries the count that the leader has when it is sent.  No   *)
(* leader ever reads it.  So ShareGroup does without, and what is here     *)
(* only looks on.                                                          *)
(***************************************************************************)
EXTENDS ShareGroup

VARIABLES
    carried,  \* the counts of the writes that are under way, by name
    count,    \* what the share coordinator has stored
    last      \* what is known of the last write: see `Known'

lag == <<carried, count, last>>

Sent    == DOMAIN writes' \ DOMAIN writes
Gone    == DOMAIN writes \ DOMAIN writes'
Arrived == {n \in DOMAIN writes \ Gone : writes'[n].stored # writes[n].stored}

(* The share coordinator stores the count of the write that comes, if its  *)
(* start offset is not a lower one.  From 4.4 on it keeps the higher count *)
(* as long as the start offset is the same: B24.                           *)
Counted(n) ==
    IF writes[n].start < store.start THEN count
    ELSE IF On("B24") /\ writes[n].start = store.start THEN Max({count, carried[n]}) ELSE carried[n]

(* A count includes what waits for other writes, which may fail.  So it is *)
(* right if the write was sent alone, and was confirmed.                   *)
Fails == left'.failures # left.failures \/ left'.failovers # left.failovers

Known ==
    IF Sent # {} THEN (IF writes = <<>> THEN "alone" ELSE "unknown")
    ELSE IF Fails THEN "unknown"
    ELSE IF Gone # {} /\ last = "alone" THEN "right" ELSE last

LagInit ==
    /\ carried = <<>> /\ last = "unknown"
    /\ count = Cardinality({o \in DOMAIN Stored.records : Stored.records[o].state \in Terminal})

LookOn ==
    /\ carried' = [n \in DOMAIN writes' |-> IF n \in Sent THEN p'.complete ELSE carried[n]]
    /\ count' = IF Arrived = {} THEN count ELSE Counted(CHOOSE n \in Arrived : TRUE)
    /\ last' = Known

LagNext == Next /\ LookOn

LagSpec == Init /\ LagInit /\ [][LagNext]_<<variables, lag>>

-----------------------------------------------------------------------------
(* What must hold *)

Lag == Max(Covered(Log)) + 1 - store.start - count

(* What is left to do for this leader, and for one that reads the state.   *)
Open == {o \in Undone : ~(o \in DOMAIN store.records /\ store.records[o].state \in Terminal)}

LagHidesNothing == last = "right" => Lag >= Cardinality(Open)
=============================================================================
