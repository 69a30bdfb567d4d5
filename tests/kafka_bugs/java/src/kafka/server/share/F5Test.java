package kafka.server.share;

import static kafka.server.share.Batches.batch;
import static kafka.server.share.Leader.acknowledged;
import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** F5: A share partition stalls when the log start moves into the gap that is fetched next. */
class F5Test {
    @Test
    void aGapIsFetchedFromTheLogStart() {
        // The state that was read: 0-4 are not known (the gap), 5-14 are acknowledged.
        Leader leader = new Leader(100, 0, acknowledged(5, 14));
        leader.log(batch(3, 4), batch(5, 14));
        leader.deleteRecordsBefore(3);
        Given.that("", leader.fetch("m1")); // out of range

        assertEquals("3-4", leader.fetch("m1"), "what is left of the gap is delivered");
    }

    @Test
    void controlTheLogStartHasNotMoved() {
        Leader leader = new Leader(100, 0, acknowledged(5, 14));
        leader.log(batch(0, 4), batch(5, 14));

        assertEquals("0-4", leader.fetch("m1"));
    }
}
