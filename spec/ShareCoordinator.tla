-------------------------- MODULE ShareCoordinator --------------------------
(***************************************************************************)
(* The share coordinator's part for one share partition: who may write its *)
(* state, and when it begins anew.                                         *)
(*                                                                         *)
(* Two epochs fence.  The leader epoch is that of the topic partition's    *)
(* leader; only a read raises it.  The state epoch is that of the group at *)
(* its initialization; only an initialization raises it.  A request with a *)
(* lower one is refused; a higher one is taken, and not remembered.        *)
(*                                                                         *)
(* Requests are a set: they may be carried out in any order, or never.     *)
(* The group coordinator may send its initialization again while it does   *)
(* not know what became of the first one.                                  *)
(*                                                                         *)
(* Records are numbers from 0 on.  A leader accepts one after the other,   *)
(* in any order.                                                           *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS
    Records,   \* 0..n
    Leaders,   \* 1..n: leader epochs
    Retries,   \* so often is the initialization sent again,
    Reloads,   \* and so often is the coordinator loaded from its log, of which only a snapshot is left
    Quirks     \* "C2", and "forgets leaders": what Kafka's share coordinator does

VARIABLES
    state,     \* what is stored: [stateEpoch, leaderEpoch, start, done], or Nothing
    highest,   \* the highest leader epoch that it knows of, also from records before the last snapshot
    requests,  \* what was sent, and was not carried out yet
    leaders,   \* by epoch, what each leader knows: [stateEpoch, start, done, confirmed], or Nothing
    left       \* [retries, reloads]

variables == <<state, highest, requests, leaders, left>>

Nothing == [none |-> TRUE]
StateEpoch == 1    \* of the group's initialization
On(bug) == bug \in Quirks

Max(S) == CHOOSE x \in S : \A y \in S : y <= x
FirstUndone(start, done) == CHOOSE o \in start..(Max(Records) + 1) :
                                o \notin done /\ \A x \in start..(o - 1) : x \in done

Initialization == [kind |-> "initialize", stateEpoch |-> StateEpoch, start |-> -1]

-----------------------------------------------------------------------------
(* Requests are carried out *)

IsStored == state # Nothing

Initialize(r) ==
    /\ r.kind = "initialize"
    /\ LET comesAgain == IsStored /\ r.stateEpoch = state.stateEpoch
       IN  IF (IsStored /\ r.stateEpoch < state.stateEpoch) \/ (comesAgain /\ ~On("C2"))
           THEN UNCHANGED state
           ELSE state' = [stateEpoch |-> r.stateEpoch, leaderEpoch |-> 0, start |-> r.start, done |-> {}]
    /\ UNCHANGED <<highest, leaders>>

IsFenced(r) == r.leader < highest

Read(r) ==
    /\ r.kind = "read"
    /\ IF IsFenced(r) \/ ~IsStored THEN UNCHANGED <<state, highest, leaders>>
       ELSE /\ state' = [state EXCEPT !.leaderEpoch = r.leader]
            /\ highest' = r.leader
            /\ leaders' = [leaders EXCEPT ![r.leader] =
                   LET start == IF state.start = -1 THEN 0 ELSE state.start   \* auto.offset.reset: earliest
                   IN  [stateEpoch |-> state.stateEpoch, start |-> FirstUndone(start, state.done),
                        done |-> {o \in state.done : o >= start}, confirmed |-> {}]]

Write(r) ==
    /\ r.kind = "write"
    /\ UNCHANGED highest
    /\ IF IsFenced(r) \/ ~IsStored \/ r.stateEpoch < state.stateEpoch THEN UNCHANGED <<state, leaders>>
       ELSE LET start == Max({state.start, r.start})
            IN  /\ state' = [state EXCEPT !.start = start, !.done = {o \in @ \union {r.record} : o >= start}]
                /\ leaders' = [leaders EXCEPT ![r.leader].start = FirstUndone(@, leaders[r.leader].done),
                                              ![r.leader].confirmed = @ \union {r.record}]

CarryOut == \E r \in requests : /\ Initialize(r) \/ Read(r) \/ Write(r)
                                /\ requests' = requests \ {r}
                                /\ UNCHANGED left

-----------------------------------------------------------------------------
(* Requests are sent, and the coordinator begins anew *)

Elected == {e \in Leaders : \A f \in Leaders : f < e => leaders[f] # Nothing \/ e = 1}

TakeOver == \E e \in Elected :   \* another leader reads; those before may still write
    /\ leaders[e] = Nothing /\ IsStored
    /\ requests' = requests \union {[kind |-> "read", leader |-> e]}
    /\ UNCHANGED <<state, highest, leaders, left>>

Accept == \E e \in Leaders : /\ leaders[e] # Nothing
    /\ \E o \in Records \ leaders[e].done :
          /\ o >= leaders[e].start
          /\ leaders' = [leaders EXCEPT ![e].done = @ \union {o}]
          /\ requests' = requests \union {[kind |-> "write", leader |-> e, stateEpoch |-> leaders[e].stateEpoch,
                                           start |-> leaders[e].start, record |-> o]}
    /\ UNCHANGED <<state, highest, left>>

Retry ==
    /\ left.retries > 0
    /\ left' = [left EXCEPT !.retries = @ - 1]
    /\ requests' = requests \union {Initialization}
    /\ UNCHANGED <<state, highest, leaders>>

Reload ==   \* records before the last snapshot were deleted
    /\ left.reloads > 0 /\ IsStored
    /\ left' = [left EXCEPT !.reloads = @ - 1]
    /\ highest' = IF On("forgets leaders") THEN state.leaderEpoch ELSE highest
    /\ UNCHANGED <<state, requests, leaders>>

Init == /\ state = Nothing /\ highest = 0
        /\ requests = {Initialization}
        /\ leaders = [e \in Leaders |-> Nothing]
        /\ left = [retries |-> Retries, reloads |-> Reloads]

Next == CarryOut \/ TakeOver \/ Accept \/ Retry \/ Reload

Spec == Init /\ [][Next]_variables

-----------------------------------------------------------------------------
(* What must hold *)

Readers == {e \in Leaders : leaders[e] # Nothing}

(* Once a leader has read the state, no leader before it changes it. *)
OneLeaderWrites ==
    [][\A e \in Readers : leaders'[e] # leaders[e] /\ leaders'[e].confirmed # leaders[e].confirmed
                          => e = Max(Readers)]_variables

(* What was confirmed to the last leader is stored: as done, or passed. *)
ConfirmedIsStored ==
    Readers # {} => LET e == Max(Readers)
                    IN  \A o \in leaders[e].confirmed : IsStored /\ (o < state.start \/ o \in state.done)

EpochsNeverFall == [][IsStored => state'.stateEpoch >= state.stateEpoch]_variables
LeaderEpochNeverFalls == [][highest' >= highest]_variables
=============================================================================
