package kafka.server.share;

import static kafka.server.share.Batches.batch;
import static kafka.server.share.Leader.acknowledged;
import static kafka.server.share.Leader.available;
import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** F4: A full share partition stalls when the log start passes its last available records. */
class F4Test {
    @Test
    void recordsAreDeliveredAfterTheLogStartHasPassedTheLastAvailableOnes() {
        assertEquals("15-19", fetchedWhenTheLogStartHasMoved(10),
            "what follows is delivered");
    }

    @Test
    void controlAWindowWithRoom() {
        assertEquals("15-19", fetchedWhenTheLogStartHasMoved(11));
    }

    private static String fetchedWhenTheLogStartHasMoved(int maxRecordLocks) {
        Leader leader =
            new Leader(maxRecordLocks, 0, available(0, 4), acknowledged(5, 14));
        leader.log(batch(5, 14), batch(15, 19));
        leader.deleteRecordsBefore(5);
        Given.that("", leader.fetch("m1")); // out of range

        return leader.fetch("m1");
    }
}
