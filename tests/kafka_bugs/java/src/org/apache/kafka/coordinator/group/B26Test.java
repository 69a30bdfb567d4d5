package org.apache.kafka.coordinator.group;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ShareGroupHeartbeatRequestData;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.junit.jupiter.api.Test;

/** B26: A lost first initialization that is retried late starts at the beginning of the topic. */
class B26Test {
    private static final Uuid TOPIC = new Uuid(1, 1);
    private static final long LATER_MS = 31_000; // than the retry interval

    private final GroupContext coordinator = new GroupContext(
        Map.of(), image(), new SimpleAssignor(), new GroupContext.Clock());
    private int memberEpoch = 0;

    @Test
    void aRetriedInitializationStartsWhereTheFirstOneDid() {
        long first = startOffsetInitialized();
        coordinator.sleep(LATER_MS, (key, records) -> { }); // it is lost

        assertEquals(first, startOffsetInitialized(), "the start offset of the retry");
    }

    @Test
    void controlTheFirstHasNoStartOffset() {
        assertEquals(-1, startOffsetInitialized()); // share.auto.offset.reset counts
    }

    /** The start offset in the InitializeShareGroupState that a heartbeat leads to. */
    private long startOffsetInitialized() {
        ShareGroupHeartbeatRequestData heartbeat = new ShareGroupHeartbeatRequestData()
            .setGroupId("group").setMemberId("member").setMemberEpoch(memberEpoch)
            .setSubscribedTopicNames(List.of("topic"));
        var answered = coordinator.shareGroupHeartbeat(heartbeat).response();
        memberEpoch = answered.getKey().memberEpoch();
        return answered.getValue().orElseThrow().groupTopicPartitionData()
            .topicsData().get(0).partitions().get(0).startOffset();
    }

    private static KRaftCoordinatorMetadataImage image() {
        MetadataImage empty = MetadataImage.EMPTY;
        MetadataDelta delta = new MetadataDelta.Builder().setImage(empty).build();
        delta.replay(new TopicRecord().setTopicId(TOPIC).setName("topic"));
        delta.replay(new PartitionRecord()
            .setTopicId(TOPIC).setPartitionId(0).setReplicas(List.of(0)));
        return new KRaftCoordinatorMetadataImage(
            delta.apply(new MetadataProvenance(0, 0, 0L, true)));
    }
}
