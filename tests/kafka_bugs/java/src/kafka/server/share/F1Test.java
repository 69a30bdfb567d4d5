package kafka.server.share;

import static kafka.server.share.Batches.batch;
import static kafka.server.share.Leader.acknowledged;
import static org.junit.jupiter.api.Assertions.assertEquals;

import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.junit.jupiter.api.Test;

/** F1: A full gap window stalls the share partition for ever. */
class F1Test {
    @Test
    void aFullGapWindowIsPassed() {
        assertEquals("15-19", fetchedWhenTheGapIsAcknowledged(10),
            "what follows the gap window is delivered");
    }

    @Test
    void controlAWindowWithRoom() {
        assertEquals("15-19", fetchedWhenTheGapIsAcknowledged(11));
    }

    private static String fetchedWhenTheGapIsAcknowledged(int maxRecordLocks) {
        // The state that was read: 0-4 are not known (the gap), 5-14 are acknowledged.
        Leader leader = new Leader(maxRecordLocks, 0, acknowledged(5, 14));
        leader.log(batch(0, 14), batch(15, 19));
        Given.that("0-4", leader.fetch("m1"));
        leader.acknowledge("m1", 0, 4, AcknowledgeType.ACCEPT).join();

        return leader.fetch("m1");
    }
}
