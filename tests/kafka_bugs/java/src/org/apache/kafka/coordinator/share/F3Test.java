package org.apache.kafka.coordinator.share;

import static org.apache.kafka.coordinator.share.StateShard.acknowledged;
import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** F3: A write that is retried is carried out after later ones, and takes the persisted start offset back. */
class F3Test {
    @Test
    void aLateWriteLeavesTheStartOffset() {
        StateShard shard = new StateShard();
        shard.initialize(0);
        // The leader has written start 0 with 0-4, start 0 with 5-9, start 5 with 10-14.
        // The second write is retried.
        shard.write(0, 5, acknowledged(0, 4));
        shard.write(5, 10, acknowledged(10, 14));
        shard.write(0, 10, acknowledged(5, 9));

        assertEquals("5: 5-14", shard.read(),
            "what was acknowledged is not delivered again");
    }

    @Test
    void controlTheWritesComeInOrder() {
        StateShard shard = new StateShard();
        shard.initialize(0);
        shard.write(0, 5, acknowledged(0, 4));
        shard.write(0, 10, acknowledged(5, 9));
        shard.write(5, 10, acknowledged(10, 14));

        assertEquals("5: 5-14", shard.read());
    }
}
