--------------------------- MODULE SharePartition ---------------------------
(***************************************************************************)
(* One share partition: a topic partition as one share group consumes it   *)
(* (KIP-932), as its leader on a broker of Kafka keeps it in memory.       *)
(*                                                                         *)
(* Here is what the leader does, as functions from its state to its next   *)
(* state.  The page docs/tla.md says in prose what is written here, and    *)
(* docs/rules.md has the rules that are cited by number.                   *)
(*                                                                         *)
(*   ShareGroup.tla          a log, members, a share coordinator and       *)
(*                           leaders that fail over: what may happen, and  *)
(*                           what must hold                                *)
(*   ShareConversation.tla   conversations that Kafka's own class has had: *)
(*                           are they behaviours of this specification?    *)
(*                                                                         *)
(* What is left open: how many records an acquisition brings (up to the    *)
(* limits of throttled delivery), where new in-flight batches are cut, and *)
(* whether the locks of a batch expire together or one by one.  There is   *)
(* no clock: a lock may expire at any time.                                *)
(***************************************************************************)
EXTENDS Integers, FiniteSets, Sequences

CONSTANT
    Quirks      \* the bugs of Kafka that are switched on, by their names in docs/kafka-bugs.md

ASSUME Quirks \subseteq {"B6", "B7", "B9b", "B10", "B15", "B17", "B22", "B23", "B24",
                         "F3", "F4", "F5", "F6", "F7", "F8"}

On(bug) == bug \in Quirks

Min(S) == CHOOSE x \in S : \A y \in S : x <= y
Max(S) == CHOOSE x \in S : \A y \in S : y <= x

-----------------------------------------------------------------------------
(***************************************************************************)
(* Records and batches.                                                    *)
(*                                                                         *)
(* A batch, of the log or in flight, is a pair of its first and its last   *)
(* offset.  A record in flight has a state, a delivery count, the member   *)
(* that has acquired it, and the name of the write that carries its last   *)
(* change, or 0.  As long as a write is pending, `before' is what the      *)
(* record goes back to if the write fails; `lapsed' says that its lock has *)
(* expired in the meantime.                                                *)
(*                                                                         *)
(* A record is Available, Acquired, Acknowledged, Archiving, that is on    *)
(* its way to the dead-letter queue, or Archived.                          *)
(***************************************************************************)

Nobody  == ""
Nothing == [state |-> "None", count |-> 0, owner |-> Nobody, limit |-> 0]
Settled == [state |-> "Settled", count |-> 0, owner |-> Nobody, limit |-> 0]
    \* archived while a write of it is pending: its outcome does not matter any more

Record(state, count, owner) ==
    [state |-> state, count |-> count, owner |-> owner, write |-> 0, before |-> Nothing, lapsed |-> FALSE]

Offsets(batch)  == batch[1]..batch[2]
Covered(batches) == UNION {Offsets(b) : b \in batches}

Terminal        == {"Acknowledged", "Archived"}
IsTerminal(r)   == r.state \in Terminal
IsDurable(r)    == IsTerminal(r) /\ r.write = 0
IsAcquirable(r) == r.state = "Available" /\ r.write = 0

(***************************************************************************)
(* The state of the leader (rule 1).                                       *)
(*                                                                         *)
(*   spso, speo  the first offset in flight; the last one ever acquired,   *)
(*               or with nothing in flight the next one to fetch           *)
(*   batches     the in-flight batches: disjoint, with gaps between them   *)
(*   records     a record for each of their offsets                        *)
(*   find        something in flight may have become acquirable            *)
(*   gap         the gap window of a new leader, or NoGap: offsets in it   *)
(*               that are not in flight may hold records that the leader   *)
(*               before had acquired (rule 4.4)                            *)
(*   complete    the delivery complete count: terminal records in flight   *)
(*   limit       share.delivery.count.limit, which may change              *)
(*   locks       share.partition.max.record.locks, which may change        *)
(*   queue       whether the group has a dead-letter queue, which may      *)
(*               change                                                    *)
(*   letters     the Archiving records that this queue has in its hands    *)
(***************************************************************************)

NoGap == [first |-> -1, last |-> -1]

InFlight(p)   == DOMAIN p.records
IsEmpty(p)    == p.batches = {}
GapIsActive(p) == p.gap # NoGap /\ p.gap.last = p.speo
LastInFlight(p) == Max(InFlight(p))

Size(p) == IF IsEmpty(p) THEN 0 ELSE p.speo - p.spso + 1    \* rule 6: gaps and terminal records count
HasRoom(p) == Size(p) < p.locks

Floors(p, o) == {b \in p.batches : b[1] <= o}                \* the floor batch has the greatest first offset
Floor(p, o)  == CHOOSE b \in Floors(p, o) : \A c \in Floors(p, o) : c[1] <= b[1]
BatchOf(p, o) == CHOOSE b \in p.batches : o \in Offsets(b)

Without(p, batches) ==
    LET left == p.batches \ batches
    IN  [p EXCEPT !.batches = left, !.records = [o \in Covered(left) |-> p.records[o]]]

Change(p, offsets, Op(_)) ==
    [p EXCEPT !.records = [o \in InFlight(p) |-> IF o \in offsets THEN Op(p.records[o]) ELSE p.records[o]]]

AtOrAbove(offsets, o) == {x \in offsets : x >= o}

IsRecord(r) ==
    /\ r.state \in {"Available", "Acquired", "Archiving"} \union Terminal
    /\ r.count \in Nat /\ r.lapsed \in BOOLEAN
    /\ (r.owner = Nobody) = (r.state # "Acquired")
    /\ (r.before = Nothing) = (r.write = 0)

IsSharePartition(p) ==
    /\ \A o \in {p.spso, p.speo, p.limit, p.locks} : o \in Nat
    /\ p.find \in BOOLEAN /\ p.queue \in BOOLEAN
    /\ p.complete \in Int    \* with B9b or B23 it may be negative
    /\ p.gap = NoGap \/ (p.gap.first \in Nat /\ p.gap.last \in Nat)
    /\ \A b, c \in p.batches : b = c \/ b[2] < c[1] \/ c[2] < b[1]
    /\ InFlight(p) = Covered(p.batches)
    /\ IsEmpty(p) \/ p.speo >= LastInFlight(p)
    /\ \A o \in InFlight(p) : IsRecord(p.records[o])
    /\ p.letters \subseteq {o \in InFlight(p) : p.records[o].state = "Archiving" /\ p.records[o].write = 0}

(***************************************************************************)
(* The next fetch offset (rule 5).                                         *)
(***************************************************************************)

GapOffsets(p) ==    \* what a new leader has to fetch again
    IF GapIsActive(p)
    THEN {o \in p.gap.first..p.gap.last : o \notin InFlight(p) /\ \E b \in p.batches : o < b[1]}
    ELSE {}

Found(p) ==
    IF IsEmpty(p) \/ ~p.find \/ p.spso > LastInFlight(p)
    THEN {}
    ELSE {o \in InFlight(p) : IsAcquirable(p.records[o])} \union GapOffsets(p)

NextFetchOffset(p) ==
    IF IsEmpty(p) \/ p.spso > LastInFlight(p) THEN p.speo
    ELSE IF Found(p) = {} THEN p.speo + 1
    ELSE IF On("F5") \/ On("F8") THEN Min(Found(p)) ELSE Max({p.spso, Min(Found(p))})

Searched(p) == IF Found(p) = {} THEN [p EXCEPT !.find = FALSE] ELSE p   \* asking for it may clear `find'

CanAcquire(p) == HasRoom(p) \/ NextFetchOffset(p) # p.speo + 1

-----------------------------------------------------------------------------
(***************************************************************************)
(* The SPSO advances past durable records (rule 12).                       *)
(***************************************************************************)

StopsAtGap(p, b) ==   \* may what is between here and batch b still have to be fetched?
    /\ GapIsActive(p)
    /\ IF On("B17") THEN b[2] >= p.gap.first
                    ELSE \E o \in p.gap.first..(b[1] - 1) : o \notin InFlight(p)

TrimGap(p) ==
    IF p.gap = NoGap \/ p.gap.first >= p.spso THEN p
    ELSE [p EXCEPT !.gap = IF p.spso > p.gap.last THEN NoGap ELSE [first |-> p.spso, last |-> p.gap.last]]

NextStart(p, last) ==  \* the SPSO, after the records up to last were passed
    LET behind == {b \in p.batches : b[1] > last}
        ends   == \E b \in p.batches : b[2] = last
        next   == Max({p.spso, Min({b[1] : b \in behind})})
        held   == IF On("B17") THEN p.gap.first ELSE Max({p.gap.first, last + 1})
    IN  IF ~ends THEN Max({p.spso, last + 1})
        ELSE IF ~GapIsActive(p) THEN next
        ELSE IF On("B9b") THEN Min({next, held}) ELSE Max({p.spso, Min({next, held})})

Pass(p, last) ==
    LET passed == {o \in InFlight(p) : o <= last}
        start  == IF On("B9b") THEN last + 1 ELSE Max({p.spso, last + 1})
        kept   == Without(p, {b \in p.batches : b[2] <= last})
    IN  IF last = LastInFlight(p)
        THEN [kept EXCEPT !.spso = start, !.speo = start, !.complete = 0]
        ELSE [kept EXCEPT !.spso = NextStart(p, last),
                          !.complete = p.complete - Cardinality(AtOrAbove(passed, p.spso))]

Advance(p) ==
    IF IsEmpty(p) \/ Floors(p, p.spso) = {} THEN p
    ELSE LET asked   == Min({p.spso, Floor(p, p.spso)[2]})
             blocked == {o \in InFlight(p) : ~IsDurable(p.records[o])}
                        \union Covered({b \in p.batches : StopsAtGap(p, b)})
             passed  == {o \in InFlight(p) : \A x \in blocked : o < x}
             after   == Pass(p, Max(passed))
         IN  IF ~IsDurable(p.records[asked]) \/ passed = {} THEN p
             ELSE IF On("B17") THEN after ELSE TrimGap(after)

(* With B7 it throws where the SPSO lies past the end of its floor batch,  *)
(* if that batch is split.  Which batches are is not known here, so it may *)
(* throw.  Then the SPSO stays, and what was to follow is forgotten.       *)
MayThrow(p) == On("B7") /\ ~IsEmpty(p) /\ Floors(p, p.spso) # {} /\ p.spso > Floor(p, p.spso)[2]

AdvanceAndHandOver(p, letters) ==    \* to the dead-letter queue, the letters: the states that may follow
    {[Advance(p) EXCEPT !.letters = @ \union letters]} \union (IF MayThrow(p) THEN {p} ELSE {})

-----------------------------------------------------------------------------
(***************************************************************************)
(* Changes that have to be written (rules 1.3, 1.5, 11).                   *)
(***************************************************************************)

Kept(p, o) == [state |-> p.records[o].state, count |-> p.records[o].count, owner |-> p.records[o].owner,
               limit |-> p.limit]

(* What nobody gets any more goes to the dead-letter queue first, if there *)
(* is one (rule 21.1).                                                     *)
GivenUp(p) == IF p.queue THEN "Archiving" ELSE "Archived"

Released(p, o) == IF p.records[o].count >= p.limit THEN GivenUp(p) ELSE "Available"   \* rule 1.2, step 2

GivenBack(p, o) == IF o < p.spso THEN "Archived" ELSE Released(p, o)   \* without having been asked for: rules 9, 10

Begin(p, changes, number) ==
    \* changes: the new state of some acquired offsets, which write `number' carries
    LET Do(o) == [p.records[o] EXCEPT !.before = Kept(p, o), !.state = changes[o],
                                      !.owner = Nobody, !.write = number]
        ended == {o \in DOMAIN changes : changes[o] \in Terminal}
    IN  [p EXCEPT !.records = [o \in InFlight(p) |-> IF o \in DOMAIN changes THEN Do(o) ELSE p.records[o]],
                  !.complete = @ + Cardinality(AtOrAbove(ended, p.spso))]

Entries(p, offsets) == [o \in offsets |-> [state |-> p.records[o].state, count |-> p.records[o].count]]

Pending(p, number) == {o \in InFlight(p) : p.records[o].write = number}

Committed(r) == [r EXCEPT !.write = 0, !.before = Nothing, !.lapsed = FALSE]

RolledBack(r) ==
    LET b == r.before
    IN  IF b = Settled THEN Committed(r)
        ELSE IF r.lapsed /\ On("B15")
        THEN Record(IF b.count >= b.limit THEN "Archived" ELSE "Available", b.count, Nobody)
        ELSE [Record(b.state, b.count, b.owner) EXCEPT !.lapsed = r.lapsed]

Outcome(p, number, Op(_)) ==
    LET q == Change(p, Pending(p, number), Op)
        reopened == {o \in Pending(p, number) : IsTerminal(p.records[o]) /\ ~IsTerminal(q.records[o])}
        archived == {o \in Pending(p, number) : ~IsTerminal(p.records[o]) /\ IsTerminal(q.records[o])}
        counted  == IF On("B23") THEN {} ELSE archived
    IN  [q EXCEPT !.find = @ \/ \E o \in Pending(p, number) : q.records[o].state = "Available",
                  !.complete = @ - Cardinality(AtOrAbove(reopened, p.spso)) + Cardinality(AtOrAbove(counted, p.spso))]

Commit(p, number) ==
    AdvanceAndHandOver(Outcome(p, number, Committed), {o \in Pending(p, number) : p.records[o].state = "Archiving"})

RollBack(p, number) ==
    LET q == Outcome(p, number, RolledBack)
        settled == {o \in Pending(p, number) : p.records[o].before = Settled}
    IN  IF settled # {} /\ ~(On("F4") /\ On("F6")) THEN Advance(q) ELSE q

(***************************************************************************)
(* What a member does with records that it has acquired: it accepts,       *)
(* releases or rejects them (rule 8), or its session is closed (rule 9).   *)
(* Both begin a write.  Records below the SPSO are archived or left alone. *)
(***************************************************************************)

Owned(p, member) == {o \in InFlight(p) : p.records[o].state = "Acquired" /\ p.records[o].owner = member}

AfterType(p, o, type) ==
    CASE type = "accept"  -> "Acknowledged"
      [] type = "release" -> Released(p, o)
      [] type = "reject"  -> GivenUp(p)
      [] type = "gap"     -> "Archived"

(***************************************************************************)
(* Acquisition locks expire (rule 10).  The change stands whatever becomes *)
(* of its write; records with a pending write only remember it.            *)
(***************************************************************************)

Expire(p, offsets) ==
    LET Do(o)    == Record(GivenBack(p, o), p.records[o].count, Nobody)
        archived == {o \in offsets : GivenBack(p, o) = "Archived"}
    IN  [p EXCEPT !.records = [o \in InFlight(p) |-> IF o \in offsets THEN Do(o) ELSE p.records[o]],
                  !.find = @ \/ \E o \in offsets : GivenBack(p, o) = "Available",
                  !.complete = @ + Cardinality(AtOrAbove(archived, p.spso))]

Settle(p, letters) == AdvanceAndHandOver(p, letters)   \* the write of what stands is answered; letters: its dead letters

Lapse(p, offsets) == Change(p, offsets, LAMBDA r : [r EXCEPT !.lapsed = TRUE])

(* A batch of which a part changes is split: each of its records gets a    *)
(* new lock, which has not expired even if that of the batch had (1.7).    *)
Split(p, offsets) == Change(p, offsets, LAMBDA r : [r EXCEPT !.lapsed = FALSE])

(***************************************************************************)
(* Records are archived without a write (rules 1.4, 14).                   *)
(***************************************************************************)

Archive(p, offsets) ==
    Change(p, offsets, LAMBDA r : [r EXCEPT !.state = "Archived", !.owner = Nobody, !.lapsed = FALSE,
                                            !.before = IF r.write = 0 THEN Nothing ELSE Settled])

ArchiveCounted(p, offsets) ==
    LET counted == IF On("B22") THEN offsets ELSE AtOrAbove(offsets, p.spso)
    IN  [Archive(p, offsets) EXCEPT !.complete = p.complete + Cardinality(counted)]

(***************************************************************************)
(* The dead-letter queue has answered (rule 21.3): whether it has written  *)
(* the dead letters or has failed, the records are archived.  That is      *)
(* written, and stands whatever becomes of the write.                      *)
(***************************************************************************)

DeadLettered(p, offsets) ==
    [Archive(p, offsets) EXCEPT !.letters = @ \ offsets, !.complete = @ + Cardinality(AtOrAbove(offsets, p.spso))]

(***************************************************************************)
(* The log starts later now (rule 13).                                     *)
(***************************************************************************)

MoveLogStart(p, start) ==
    LET below == {o \in InFlight(p) : p.spso <= o /\ o < start}
        gone  == {o \in below : p.records[o].state = "Available"}
        ended == {o \in below : IsTerminal(p.records[o])}
        moved == [Archive(p, gone) EXCEPT !.find = @ \/ gone # {}, !.spso = start,
                                          !.speo = Max({@, start}), !.complete = @ - Cardinality(ended)]
        kept  == IF On("F5") THEN moved ELSE TrimGap(moved)
    IN  IF start <= p.spso THEN p
        ELSE IF IsEmpty(p) THEN [p EXCEPT !.spso = start, !.speo = start, !.complete = 0]
        ELSE IF On("F4") THEN kept ELSE Advance(kept)

-----------------------------------------------------------------------------
(***************************************************************************)
(* A member acquires what a fetch has brought (rule 7).                    *)
(*                                                                         *)
(*   from     the offset that was fetched from                             *)
(*   fetched  the log batches that came                                    *)
(*   aborted  those of them that belong to aborted transactions, and are   *)
(*            not to be seen by the group                                  *)
(***************************************************************************)

FirstOf(fetched) == Min({b[1] : b \in fetched})
LastOf(fetched)  == Max({b[2] : b \in fetched})

(* What lies between the offset asked for and the first batch that came is *)
(* not in the log any more (rule 7.3).                                     *)
Compacted(p, from, fetched) ==
    LET gone == {o \in InFlight(p) : from <= o /\ o < FirstOf(fetched) /\ p.records[o].state = "Available"}
    IN  [ArchiveCounted(p, gone) EXCEPT !.find = @ \/ gone # {}]

(* Nor is a gap that the SPSO waits at, if a fetch begins behind it: B10,  *)
(* healed (rule 24.1).                                                     *)
RECURSIVE PassNaturalGap(_, _, _)
PassNaturalGap(p, from, fetched) ==
    LET first  == FirstOf(fetched)
        above  == {b[1] : b \in {c \in p.batches : c[1] > p.spso}}
        start  == Min({first} \union above)
        moved  == [p EXCEPT !.spso = start, !.speo = Max({@, start})]
    IN  IF On("B10") \/ IsEmpty(p) \/ from > p.spso \/ first <= p.spso \/ p.spso \in InFlight(p) THEN p
        ELSE PassNaturalGap(Advance(IF GapIsActive(moved) THEN TrimGap(moved) ELSE moved), from, fetched)

LimitLast(p, from, fetched) ==   \* rule 7.2: inside a full window only what is in flight is delivered again
    IF HasRoom(p) THEN LastOf(fetched) ELSE Min({LastOf(fetched), p.speo})

Base(p, fetched) ==              \* rule 7.4
    LET first == FirstOf(fetched)
        none  == Floors(p, first) = {}
    IN  IF none THEN Max({first, p.spso})
        ELSE IF first <= Floor(p, first)[2] THEN Floor(p, first)[1]
        ELSE IF On("B6") THEN first ELSE Max({first, p.spso})

Overlap(p, from, fetched) ==
    {b \in p.batches : /\ Min({FirstOf(fetched), Base(p, fetched)}) <= b[1]
                       /\ b[1] <= LimitLast(p, from, fetched)}

Again(p, from, fetched) ==       \* in flight, and can be acquired again (rule 7.6)
    {o \in Covered(Overlap(p, from, fetched)) :
        /\ FirstOf(fetched) <= o /\ o <= LimitLast(p, from, fetched)
        /\ IsAcquirable(p.records[o])}

New(p, from, fetched) ==         \* not in flight yet: in the gap window, or behind it all (rules 7.5 to 7.8)
    LET last    == LimitLast(p, from, fetched)
        overlap == Overlap(p, from, fetched)
        begin   == IF On("B6") THEN Base(p, fetched) ELSE Max({Base(p, fetched), p.spso})
        tail    == IF overlap = {} THEN (IF IsEmpty(p) THEN Max({p.speo, Base(p, fetched)}) ELSE Base(p, fetched))..last
                   ELSE Max({Max({b[2] : b \in overlap}) + 1, begin})..last
        between == IF overlap = {} \/ ~GapIsActive(p) THEN {}
                   ELSE begin..(Max({b[1] : b \in overlap}) - 1)
    IN  (tail \union between) \ InFlight(p)

Acquirable(p, from, fetched) ==
    IF LastOf(fetched) < p.spso \/ Min({FirstOf(fetched), Base(p, fetched)}) > LimitLast(p, from, fetched)
       \/ (~HasRoom(p) /\ from > p.speo)
    THEN {} ELSE Again(p, from, fetched) \union New(p, from, fetched)

(***************************************************************************)
(* Throttled delivery (rule 20.3): what has failed before comes in ever    *)
(* smaller pieces of one batch, and on its last delivery a record comes    *)
(* alone.                                                                  *)
(***************************************************************************)

Threshold(p) == Max({2, (p.limit + 1) \div 2})

RECURSIVE Halved(_, _)
Halved(size, times) == IF times <= 0 THEN size ELSE Halved(size \div 2, times - 1)

IsSmallEnough(p, again, taken) ==
    \* again: what could be delivered again; taken: what is acquired
    \A b \in p.batches :
        LET mine  == taken \intersect Offsets(b)
            worn  == {o \in again \intersect Offsets(b) : p.records[o].count >= Threshold(p)}
            first == Min(worn \intersect mine)
            most  == Halved(b[2] - b[1] + 1, p.records[first].count - Threshold(p) + 1)
        IN  mine # {} /\ worn # {} =>
            /\ taken = mine
            /\ worn \intersect mine # {} =>
                   Cardinality(mine) <= Max({most, Cardinality({o \in mine : o <= first})})
            /\ p.limit > 2 /\ (\E o \in mine : p.records[o].count = p.limit - 1) => Cardinality(mine) = 1

(***************************************************************************)
(* What is taken is all that can be acquired up to some offset.  The new   *)
(* offsets among them become batches: one for each run of offsets, cut     *)
(* where some log batches begin.  With `rest' a batch is longer than what  *)
(* was taken of it (rule 20.1, RECORD_LIMIT).                              *)
(***************************************************************************)

Prefixes(S) == {{x \in S : x <= o} : o \in S}

Runs(S, cuts) ==
    LET begins == {o \in S : o - 1 \notin S \/ o \in cuts}
        end(o) == Max({x \in S : o <= x /\ \A y \in (o + 1)..x : y \in S /\ y \notin cuts})
    IN  {<<o, end(o)>> : o \in begins}

Take(p, member, taken, rest, cuts) ==
    LET fresh == (taken \union rest) \ InFlight(p)
        made  == Runs(fresh, cuts)
        again == taken \intersect InFlight(p)
        first == {o \in {b[1] : b \in made} : o - 1 \notin fresh /\ \A x \in InFlight(p) \union fresh : o <= x}
        new(o) == IF o \in taken THEN Record("Acquired", 1, member) ELSE Record("Available", 0, Nobody)
        old(o) == IF o \in again THEN Record("Acquired", p.records[o].count + 1, member) ELSE p.records[o]
        speo  == Max({p.speo} \union fresh)
        next  == Max(taken) + 1
        q     == [p EXCEPT !.batches = @ \union made,
                           !.records = [o \in InFlight(p) \union fresh |-> IF o \in fresh THEN new(o) ELSE old(o)],
                           !.spso = IF first = {} THEN @ ELSE Min(first),
                           !.speo = speo,
                           !.find = @ \/ rest # {}]
    IN  [q EXCEPT !.gap = IF GapIsActive(q) /\ next <= q.gap.last THEN [first |-> next, last |-> q.gap.last]
                                                                  ELSE NoGap]

ArchiveAborted(p, aborted) ==    \* rule 7.10: whoever has acquired them
    ArchiveCounted(p, {o \in Covered(aborted) \intersect InFlight(p) : p.records[o].state = "Acquired"})

Looked(p, from, fetched) == Compacted(PassNaturalGap(p, from, fetched), from, fetched)

Takeable(p, from, fetched) ==
    LET q == Looked(p, from, fetched)
    IN  {taken \in Prefixes(Acquirable(q, from, fetched)) : IsSmallEnough(q, Again(q, from, fetched), taken)}

Rest(p, from, fetched, taken) ==    \* of the log batch in which a record limit ends what is taken
    LET new == New(Looked(p, from, fetched), from, fetched)
    IN  IF taken = {} THEN {}
        ELSE {o \in new : /\ o > Max(taken) /\ Max(taken)..o \subseteq new
                          /\ \E b \in fetched : {Max(taken), o} \subseteq Offsets(b)}

Acquire(p, member, from, fetched, aborted, taken, rest, cuts) ==   \* taken: one of Takeable, or nothing
    LET passed   == PassNaturalGap(p, from, fetched)
        q        == Compacted(passed, from, fetched)
        given    == IF taken = {} THEN q ELSE Take(q, member, taken, rest, cuts)
        cleared  == IF taken = {} THEN q ELSE ArchiveAborted(given, aborted)
        advances == (q # passed /\ ~On("F6")) \/ (cleared # given /\ ~On("F7"))
    IN  IF advances THEN Advance(cleared) ELSE cleared

-----------------------------------------------------------------------------
(***************************************************************************)
(* A new leader begins with what is stored (rule 4): a start offset, and   *)
(* batches of records that are not acquired.  What is Archiving goes to    *)
(* the dead-letter queue again (rule 21.4).                                *)
(***************************************************************************)

Empty(start, settings) ==   \* settings: limit, locks and queue
    [spso |-> start, speo |-> start, batches |-> {}, records |-> [o \in {} |-> Nothing], find |-> FALSE,
     gap |-> NoGap, complete |-> 0, limit |-> settings.limit, locks |-> settings.locks, queue |-> settings.queue,
     letters |-> {}]

Loaded(start, batches, stored, settings) ==   \* stored: state and count by offset
    LET covered  == Covered(batches)
        last     == Max(covered)
        gaps     == (start..last) \ covered
        In(states) == {o \in covered : stored[o].state \in states}
    IN  IF batches = {} THEN Empty(start, settings)
        ELSE Advance([Empty(start, settings) EXCEPT
                          !.speo = last, !.batches = batches, !.find = TRUE,
                          !.records = [o \in covered |-> Record(stored[o].state, stored[o].count, Nobody)],
                          !.gap = IF gaps = {} THEN NoGap ELSE [first |-> Min(gaps), last |-> last],
                          !.complete = Cardinality(In(Terminal)), !.letters = In({"Archiving"})])
=============================================================================
