package kafka.server.share;

import static kafka.server.share.Responses.list;
import static kafka.server.share.Responses.map;
import static kafka.server.share.Responses.unwrap;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.clients.consumer.internals.ShareAcquireMode;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.server.share.acknowledge.ShareAcknowledgementBatch;
import org.apache.kafka.server.share.persister.PartitionAllData;
import org.apache.kafka.server.share.persister.PartitionErrorData;
import org.apache.kafka.server.share.persister.PartitionIdData;
import org.apache.kafka.server.share.persister.ReadShareGroupStateResult;
import org.apache.kafka.server.share.persister.TopicData;
import org.apache.kafka.server.share.persister.WriteShareGroupStateResult;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchPartitionData;

/** What tests hand to a share partition and its persister, as the line protocol's JSON: requests and their parts. */
final class RecordedRequests {
    private RecordedRequests() { }

    /** A call of a public method; others are only named. */
    @SuppressWarnings("unchecked")
    static Map<String, Object> request(Recorded p, String method, Object[] arguments) {
        switch (method) {
            case "maybeInitialize":
                return p.request("initialize");
            case "acquire":
                FetchPartitionData data = (FetchPartitionData) arguments[5];
                return p.request("acquire",
                    "member", arguments[0],
                    "mode", ((ShareAcquireMode) arguments[1]).name().toLowerCase(Locale.ROOT),
                    "batch_size", arguments[2],
                    "max_records", arguments[3],
                    "fetch_offset", arguments[4],
                    "batches", logBatches(data),
                    "aborted", aborted(data.abortedTransactions),
                    "isolation", isolation((FetchIsolation) arguments[6]));
            case "acknowledge":
                return p.request("acknowledge", "member", arguments[0],
                    "batches", ackBatches((List<ShareAcknowledgementBatch>) arguments[1]));
            case "releaseAcquiredRecords":
                return p.request("release", "member", arguments[0]);
            case "nextFetchOffset":
                return p.request("next_fetch_offset");
            case "canAcquireRecords":
                return p.request("can_acquire");
            case "updateCacheAndOffsets":
                return p.request("log_start", "offset", arguments[0]);
            case "markFenced":
                return p.request("fence");
            case "maybeAcquireFetchLock":
                return p.request("lock_fetch", "id", arguments[0].toString());
            case "releaseFetchLock":
                return p.request("unlock_fetch", "id", arguments[0].toString());
            default:
                return p.request("internal", "method", method);
        }
    }

    static String isolation(FetchIsolation isolation) {
        if (isolation == null)
            return null;
        return switch (isolation) {
            case HIGH_WATERMARK -> "read_uncommitted";
            case TXN_COMMITTED -> "read_committed";
            default -> isolation.name().toLowerCase(Locale.ROOT);
        };
    }

    static List<Object> logBatches(FetchPartitionData data) {
        List<Object> l = new ArrayList<>();
        for (RecordBatch b : data.records.batches()) {
            List<Object> batch = list(b.baseOffset(), b.lastOffset());
            if (b.hasProducerId() || b.isControlBatch() || b.isTransactional()) {
                batch.add(map("producer_id", b.producerId(), "transactional", b.isTransactional(),
                    "control", b.isControlBatch() ? control(b) : null));
            }
            l.add(batch);
        }
        return l;
    }

    private static String control(RecordBatch batch) {
        Iterator<Record> it = batch.iterator();
        return it.hasNext() ? ControlRecordType.parse(it.next().key()).name() : "EMPTY";
    }

    static Object aborted(Optional<List<FetchResponseData.AbortedTransaction>> transactions) {
        if (transactions == null || transactions.isEmpty())
            return null;
        List<Object> l = new ArrayList<>();
        for (var a : transactions.get())
            l.add(list(a.producerId(), a.firstOffset()));
        return l;
    }

    static List<Object> ackBatches(List<ShareAcknowledgementBatch> batches) {
        List<Object> l = new ArrayList<>();
        for (var b : batches)
            l.add(list(b.firstOffset(), b.lastOffset(), b.acknowledgeTypes().stream().map(Byte::intValue).toList()));
        return l;
    }

    // ---- persister answers ----

    static Map<String, Object> throwsAnswer(RuntimeException e) {
        return map("throws", e.getClass().getName(), "message", e.getMessage());
    }

    /** The ANSWER for a future as the persister returned it. */
    static Object answer(CompletableFuture<?> f, Uuid topicId, int partition) {
        if (f == null)
            return "null_future";
        if (!f.isDone())
            return "hold";
        try {
            return answer(f.join(), null, topicId, partition);
        } catch (RuntimeException e) {
            return answer(null, e, topicId, partition);
        }
    }

    /** The ANSWER for a settled read or write of the given partition. */
    static Object answer(Object result, Throwable thrown, Uuid topicId, int partition) {
        if (thrown != null) {
            Throwable t = unwrap(thrown);
            return map("exception", t.getClass().getName(), "message", t.getMessage());
        }
        if (result == null)
            return "null";
        boolean read = result instanceof ReadShareGroupStateResult;
        List<? extends TopicData<?>> topics = read
            ? ((ReadShareGroupStateResult) result).topicsData() : ((WriteShareGroupStateResult) result).topicsData();
        if (topics == null)
            return map("topics", null);
        if (topics.size() == 1 && topics.get(0).topicId() == topicId && topics.get(0).partitions().size() == 1) {
            Object only = topics.get(0).partitions().get(0);
            if (index(only) == partition)
                return partitionAnswer(only, read);
        }
        List<Object> all = new ArrayList<>();
        for (TopicData<?> topic : topics) {
            List<Object> partitions = new ArrayList<>();
            for (Object p : topic.partitions())
                partitions.add(map("partition", index(p), "answer", partitionAnswer(p, read)));
            all.add(map("same_topic_id", topic.topicId() == topicId, "partitions", partitions));
        }
        return map("topics", all);
    }

    private static int index(Object partition) {
        return ((PartitionIdData) partition).partition();
    }

    private static Object partitionAnswer(Object partition, boolean read) {
        Map<String, Object> answer = new LinkedHashMap<>();
        PartitionErrorData e = (PartitionErrorData) partition;
        if (e.errorCode() != Errors.NONE.code()) {
            answer.put("error", Errors.forCode(e.errorCode()).name());
            answer.put("message", e.errorMessage());
        }
        if (read) {
            PartitionAllData a = (PartitionAllData) partition;
            answer.put("state_epoch", a.stateEpoch());
            answer.put("start_offset", a.startOffset());
            answer.put("state_batches", Responses.stateBatches(a.stateBatches()));
        }
        return answer.isEmpty() ? "ok" : answer;
    }
}
