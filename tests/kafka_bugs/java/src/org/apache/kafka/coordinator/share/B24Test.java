package org.apache.kafka.coordinator.share;

import static org.apache.kafka.coordinator.share.StateShard.acknowledged;
import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** B24: The persisted delivery complete count stays too high after a write that failed. */
class B24Test {
    @Test
    void theCountOfALaterWriteIsStored() {
        StateShard shard = new StateShard();
        shard.initialize(0);
        // A write of 1-2 was sent first, and fails. The second one counts 1-2 as complete
        // too, and the third does not any more.
        shard.write(0, 5, acknowledged(3, 5));
        shard.write(0, 4, acknowledged(6, 6));

        assertEquals(4, shard.deliveryCompleteCount(),
            "as many are complete as are acknowledged: 3-6");
    }

    @Test
    void controlNoWriteHasFailed() {
        StateShard shard = new StateShard();
        shard.initialize(0);
        shard.write(0, 3, acknowledged(3, 5));
        shard.write(0, 4, acknowledged(6, 6));

        assertEquals(4, shard.deliveryCompleteCount());
    }
}
