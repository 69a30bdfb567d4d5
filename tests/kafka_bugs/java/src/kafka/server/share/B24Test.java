package kafka.server.share;

import static kafka.server.share.Batches.batch;
import static org.junit.jupiter.api.Assertions.assertEquals;

import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.share.StateShard;
import org.junit.jupiter.api.Test;

/** B24: The persisted delivery complete count stays too high after a write that failed. */
class B24Test {
    private final StateShard coordinator = new StateShard();
    private final Leader leader = new Leader(200, 0);

    @Test
    void theCountOfALaterWriteIsStored() {
        begin();
        leader.holdWrites();
        leader.acknowledge("m1", 1, 2, AcknowledgeType.ACCEPT);
        leader.acknowledge("m1", 3, 5, AcknowledgeType.ACCEPT);
        // It was not carried out.
        leader.answerFirstWrite(Errors.COORDINATOR_NOT_AVAILABLE);
        leader.answerFirstWrite(Errors.NONE);
        leader.acknowledge("m1", 6, 6, AcknowledgeType.ACCEPT);

        coordinator.write(leader.writes.get(1));
        coordinator.write(leader.writes.get(2));

        assertEquals(4, coordinator.deliveryCompleteCount(), "3-6 are complete");
    }

    @Test
    void controlNoWriteHasFailed() {
        begin();
        leader.acknowledge("m1", 3, 5, AcknowledgeType.ACCEPT);
        leader.acknowledge("m1", 6, 6, AcknowledgeType.ACCEPT);

        leader.writes.forEach(coordinator::write);

        assertEquals(4, coordinator.deliveryCompleteCount());
    }

    private void begin() {
        coordinator.initialize(0);
        leader.log(batch(0, 9));
        Given.that("0-9", leader.fetch("m1"));
    }
}
