package kafka.server.share;

import kafka.server.ReplicaManager;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.server.share.metrics.SharePartitionMetrics;
import org.mockito.Mockito;

/** How 4.2 and 4.3 make a SharePartition. */
final class SharePartitions {
    private SharePartitions() { }

    static SharePartition create(Leader leader) {
        return new SharePartition("group", leader.topicIdPartition, 7, leader.maxRecordLocks,
            Leader.DELIVERY_COUNT_LIMIT, Leader.LOCK_MS, leader.timer, leader.time, leader,
            Mockito.mock(ReplicaManager.class), Mockito.mock(GroupConfigManager.class),
            SharePartition.SharePartitionState.EMPTY,
            Mockito.mock(SharePartitionManager.SharePartitionListener.class),
            new SharePartitionMetrics("group", "topic", 0));
    }
}
