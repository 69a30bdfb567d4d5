package org.apache.kafka.coordinator.share;

import static org.apache.kafka.coordinator.share.StateShard.acknowledged;
import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** C2: An initialization that comes again wipes the state. */
class C2Test {
    @Test
    void anInitializationThatComesAgainChangesNothing() {
        StateShard shard = writtenShard();

        // The group coordinator's, retried: the same state epoch, and no start offset.
        shard.initialize(-1);

        assertEquals("50: 52-56", shard.read(), "what was written is read");
    }

    @Test
    void controlItComesOnce() {
        assertEquals("50: 52-56", writtenShard().read());
    }

    private static StateShard writtenShard() {
        StateShard shard = new StateShard();
        shard.initialize(-1);
        shard.read();
        shard.write(50, 5, acknowledged(52, 56));
        return shard;
    }
}
