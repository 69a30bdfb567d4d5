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
(* One thread carries out what is asked of a partition of the state topic: *)
(* a request that it does not come to the end of is its last one.          *)
(*                                                                         *)
(* Records are numbers from 0 on.  A leader accepts one after the other,   *)
(* in any order; its write has a state batch for it, <<first, last>>.      *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS
    Records,   \* 0..n
    Leaders,   \* 1..n: leader epochs
    Retries,   \* so often is the initialization sent again,
    Reloads,   \* so often is the coordinator loaded from its log, of which only a snapshot is left,
    Reversed,  \* so many writes have a state batch that ends before it begins,
    Fences,    \* and so many leaders learn that they are none any more before their read is answered
    Quirks     \* "C1", "C2", "forgets leaders": what Kafka's share coordinator does; "B14": what its leaders do

ASSUME Quirks \subseteq {"B14", "C1", "C2", "forgets leaders"}

VARIABLES
    state,     \* what is stored: [stateEpoch, leaderEpoch, start, done], or Nothing
    highest,   \* the highest leader epoch that it knows of, also from records before the last snapshot
    requests,  \* what was sent, and was not carried out yet
    leaders,   \* by epoch, what each leader knows: [stateEpoch, start, done, confirmed], or Nothing
    fenced,    \* those of them that were fenced while they read
    endless,   \* the coordinator's thread is busy with a request that does not end
    left       \* what may still happen: [retries, reloads, reversed, fences]

variables == <<state, highest, requests, leaders, fenced, endless, left>>

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

Readers == {e \in Leaders : leaders[e] # Nothing}

Initialize(r) ==
    /\ r.kind = "initialize"
    /\ LET comesAgain == IsStored /\ r.stateEpoch = state.stateEpoch
       IN  IF (IsStored /\ r.stateEpoch < state.stateEpoch) \/ (comesAgain /\ ~On("C2"))
           THEN UNCHANGED state
           ELSE state' = [stateEpoch |-> r.stateEpoch, leaderEpoch |-> 0, start |-> r.start, done |-> {}]
    /\ UNCHANGED <<highest, leaders, endless>>

IsFenced(r) == r.leader < highest

Read(r) ==
    /\ r.kind = "read"
    /\ UNCHANGED endless
    /\ IF IsFenced(r) \/ ~IsStored THEN UNCHANGED <<state, highest, leaders>>
       ELSE /\ state' = [state EXCEPT !.leaderEpoch = r.leader]
            /\ highest' = r.leader
            /\ leaders' = IF r.leader \in fenced /\ ~On("B14") THEN leaders ELSE [leaders EXCEPT ![r.leader] =
                   LET start == IF state.start = -1 THEN 0 ELSE state.start   \* auto.offset.reset: earliest
                   IN  [stateEpoch |-> state.stateEpoch, start |-> FirstUndone(start, state.done),
                        done |-> {o \in state.done : o >= start}, confirmed |-> {}]]

IsReversed(r) == r.batch[2] < r.batch[1]

Meets(r) == \E o \in state.done : r.batch[2] <= o /\ o <= r.batch[1]

Write(r) ==   \* a reversed batch is refused; with C1 combining it with one that it meets does not end
    /\ r.kind = "write"
    /\ UNCHANGED highest
    /\ IF IsFenced(r) \/ ~IsStored \/ r.stateEpoch < state.stateEpoch THEN UNCHANGED <<state, leaders, endless>>
       ELSE IF IsReversed(r) THEN endless' = (On("C1") /\ Meets(r)) /\ UNCHANGED <<state, leaders>>
       ELSE LET start == Max({state.start, r.start})
                done  == r.batch[1]..r.batch[2]
            IN  /\ state' = [state EXCEPT !.start = start, !.done = {o \in @ \union done : o >= start}]
                /\ leaders' = [leaders EXCEPT ![r.leader].start = FirstUndone(@, leaders[r.leader].done),
                                              ![r.leader].confirmed = @ \union done]
                /\ UNCHANGED endless

CarryOut ==
    /\ ~endless
    /\ \E r \in requests : /\ Initialize(r) \/ Read(r) \/ Write(r)
                           /\ requests' = requests \ {r}
    /\ UNCHANGED <<fenced, left>>

-----------------------------------------------------------------------------
(* Requests are sent, and the coordinator begins anew *)

Elected == {e \in Leaders \ fenced : \A f \in Leaders : f < e => leaders[f] # Nothing \/ f \in fenced}

TakeOver == \E e \in Elected :   \* another leader reads; those before may still write
    /\ leaders[e] = Nothing /\ IsStored
    /\ requests' = requests \union {[kind |-> "read", leader |-> e]}
    /\ UNCHANGED <<state, highest, leaders, fenced, endless, left>>

Fence == \E r \in requests :   \* its broker has heard of another leader, or of the end of the group
    /\ r.kind = "read" /\ r.leader \notin fenced
    /\ left.fences > 0
    /\ left' = [left EXCEPT !.fences = @ - 1]
    /\ fenced' = fenced \union {r.leader}
    /\ UNCHANGED <<state, highest, requests, leaders, endless>>

WriteOf(e, batch) ==
    [kind |-> "write", leader |-> e, stateEpoch |-> leaders[e].stateEpoch, start |-> leaders[e].start, batch |-> batch]

Accept == \E e \in Readers :
    /\ \E o \in Records \ leaders[e].done :
          /\ o >= leaders[e].start
          /\ leaders' = [leaders EXCEPT ![e].done = @ \union {o}]
          /\ requests' = requests \union {WriteOf(e, <<o, o>>)}
    /\ UNCHANGED <<state, highest, fenced, endless, left>>

Reverse == \E e \in Readers :   \* a program that is not Kafka's may write so
    /\ left.reversed > 0
    /\ left' = [left EXCEPT !.reversed = @ - 1]
    /\ \E first, last \in Records : last < first /\ requests' = requests \union {WriteOf(e, <<first, last>>)}
    /\ UNCHANGED <<state, highest, leaders, fenced, endless>>

Retry ==
    /\ left.retries > 0
    /\ left' = [left EXCEPT !.retries = @ - 1]
    /\ requests' = requests \union {Initialization}
    /\ UNCHANGED <<state, highest, leaders, fenced, endless>>

Reload ==   \* records before the last snapshot were deleted
    /\ left.reloads > 0 /\ IsStored
    /\ left' = [left EXCEPT !.reloads = @ - 1]
    /\ highest' = IF On("forgets leaders") THEN state.leaderEpoch ELSE highest
    /\ UNCHANGED <<state, requests, leaders, fenced, endless>>

Init == /\ state = Nothing /\ highest = 0
        /\ requests = {Initialization}
        /\ leaders = [e \in Leaders |-> Nothing] /\ fenced = {}
        /\ endless = FALSE
        /\ left = [retries |-> Retries, reloads |-> Reloads, reversed |-> Reversed, fences |-> Fences]

Next == CarryOut \/ TakeOver \/ Fence \/ Accept \/ Reverse \/ Retry \/ Reload

Spec == Init /\ [][Next]_variables

(* The thread goes on as long as there is something to do; whatever asks   *)
(* it need not.                                                            *)
FairSpec == Spec /\ WF_variables(CarryOut)

-----------------------------------------------------------------------------
(* What must hold *)

TypeOK ==
    /\ IsStored => /\ state.stateEpoch = StateEpoch /\ state.leaderEpoch \in Leaders \union {0}
                   /\ state.start \in Records \union {-1, Max(Records) + 1} /\ state.done \subseteq Records
    /\ highest \in Leaders \union {0}
    /\ \A r \in requests : r = Initialization \/ (r.kind \in {"read", "write"} /\ r.leader \in Leaders)
    /\ \A e \in Readers : leaders[e].confirmed \subseteq leaders[e].done /\ leaders[e].done \subseteq Records
    /\ fenced \subseteq Leaders
    /\ endless \in BOOLEAN
    /\ \A few \in {left.retries, left.reloads, left.reversed, left.fences} : few \in Nat

(* Once a leader has read the state, no leader before it changes it. *)
OneLeaderWrites ==
    [][\A e \in Readers : leaders'[e] # leaders[e] /\ leaders'[e].confirmed # leaders[e].confirmed
                          => e = Max(Readers)]_variables

(* A leader that was fenced while it read stays so, and delivers nothing.  *)
FencedStays == \A e \in fenced : leaders[e] = Nothing

(* What was confirmed to the last leader is stored: as done, or passed. *)
ConfirmedIsStored ==
    Readers # {} => LET e == Max(Readers)
                    IN  \A o \in leaders[e].confirmed : IsStored /\ (o < state.start \/ o \in state.done)

(* Of FairSpec: whatever is asked, some day nothing waits for an answer.   *)
AllIsAnswered == []<>(requests = {})

EpochsNeverFall == [][IsStored => state'.stateEpoch >= state.stateEpoch]_variables
LeaderEpochNeverFalls == [][highest' >= highest]_variables
=============================================================================
