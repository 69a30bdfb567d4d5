package kafka.server.share;

import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import kafka.server.ReplicaManager;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfigProvider;
import org.apache.kafka.server.share.dlq.ShareGroupDLQManager;
import org.apache.kafka.server.share.dlq.ShareGroupDLQRecordParameter;
import org.apache.kafka.server.share.metrics.SharePartitionMetrics;
import org.mockito.Mockito;
import org.mockito.stubbing.Answer;

/** How 4.4 makes a SharePartition: its group has a dead-letter queue, which takes all that it is given. */
final class SharePartitions {
    private SharePartitions() { }

    static SharePartition create(Leader leader) {
        ReplicaManager replicaManager = Mockito.mock(ReplicaManager.class);
        Map<String, Object> settings = Map.of(
            "shareRecordLockDurationMs", Optional.of(Leader.LOCK_MS),
            "shareDeliveryCountLimit", Optional.of(Leader.DELIVERY_COUNT_LIMIT),
            "sharePartitionMaxRecordLocks", Optional.of(leader.maxRecordLocks),
            "shareRenewAcknowledgeEnable", Optional.of(true),
            "errorsDLQTopicName", "dlq.topic");
        Answer<Object> setting = call -> {
            Object value = settings.get(call.getMethod().getName());
            return value != null ? value : Mockito.RETURNS_DEFAULTS.answer(call);
        };
        GroupConfigManager configs = Mockito.mock(GroupConfigManager.class);
        Mockito.when(configs.groupConfig("group")).thenReturn(Optional.of(Mockito.mock(GroupConfig.class, setting)));
        return new SharePartition("group", leader.topicIdPartition, 7, leader.maxRecordLocks,
            Leader.DELIVERY_COUNT_LIMIT, Leader.LOCK_MS, leader.timer, leader.time, leader,
            new ReplicaManagerPartitionMetadataProvider(replicaManager),
            replicaManager::completeDelayedShareFetchRequest, new ShareGroupConfigProvider(configs),
            SharePartition.SharePartitionState.EMPTY,
            Mockito.mock(SharePartitionManager.SharePartitionListener.class),
            new SharePartitionMetrics("group", "topic", 0), () -> true, new DeadLetters());
    }

    private static final class DeadLetters implements ShareGroupDLQManager {
        @Override
        public CompletableFuture<Void> enqueue(ShareGroupDLQRecordParameter record) {
            return CompletableFuture.completedFuture(null);
        }

        @Override
        public void stop() { }
    }
}
