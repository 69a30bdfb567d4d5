package kafka.server.share;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiFunction;
import org.apache.kafka.clients.consumer.internals.ShareAcquireMode;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.FetchResponseData.AbortedTransaction;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.utils.ByteBufferOutputStream;
import org.apache.kafka.server.share.acknowledge.ShareAcknowledgementBatch;
import org.apache.kafka.server.share.persister.PartitionFactory;
import org.apache.kafka.server.share.persister.PartitionInfoData;
import org.apache.kafka.server.share.persister.PersisterStateBatch;
import org.apache.kafka.server.share.persister.ReadShareGroupStateResult;
import org.apache.kafka.server.share.persister.TopicData;
import org.apache.kafka.server.share.persister.WriteShareGroupStateResult;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchPartitionData;

/** The line protocol's requests and persister answers as Kafka's objects: the reverse of {@link Responses}. */
final class Requests {
    private static final int BUFFER_SIZE = 256;

    private Requests() { }

    static ShareAcquireMode mode(JsonNode request) {
        return ShareAcquireMode.valueOf(request.path("mode").asText("batch_optimized").toUpperCase(Locale.ROOT));
    }

    static FetchIsolation isolation(JsonNode request) {
        String name = request.path("isolation").asText("read_uncommitted");
        return switch (name) {
            case "read_uncommitted" -> FetchIsolation.HIGH_WATERMARK;
            case "read_committed" -> FetchIsolation.TXN_COMMITTED;
            default -> FetchIsolation.valueOf(name.toUpperCase(Locale.ROOT));
        };
    }

    /** What the broker read from the log: the "batches" and "aborted" of an acquire request. */
    static FetchPartitionData fetchData(JsonNode request) {
        Optional<List<AbortedTransaction>> aborted = Optional.empty();
        if (request.hasNonNull("aborted")) {
            List<AbortedTransaction> l = new ArrayList<>();
            for (JsonNode a : request.get("aborted"))
                l.add(new AbortedTransaction().setProducerId(a.get(0).asLong()).setFirstOffset(a.get(1).asLong()));
            aborted = Optional.of(l);
        }
        return new FetchPartitionData(Errors.NONE, Long.MAX_VALUE, 0L, records(request.get("batches")),
            Optional.empty(), OptionalLong.empty(), aborted, OptionalInt.empty(), false);
    }

    private static Records records(JsonNode batches) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (JsonNode b : batches) {
            ByteBuffer buffer = batch(b.get(0).asLong(), b.get(1).asLong(), b.path(2));
            byte[] bytes = new byte[buffer.remaining()];
            buffer.duplicate().get(bytes);
            out.writeBytes(bytes);
        }
        return MemoryRecords.readableRecords(ByteBuffer.wrap(out.toByteArray()));
    }

    /** A record batch over first..last with one record at first: SharePartition looks at offsets and headers only. */
    private static ByteBuffer batch(long first, long last, JsonNode attributes) {
        long producerId = attributes.path("producer_id").asLong(-1);
        if (attributes.path("control").isTextual()) {
            ControlRecordType type = ControlRecordType.valueOf(attributes.get("control").asText());
            return MemoryRecords.withEndTransactionMarker(first, 0L, 0, producerId, (short) 0,
                new EndTransactionMarker(type, 0)).buffer();
        }
        boolean producer = producerId >= 0;
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(new ByteBufferOutputStream(BUFFER_SIZE),
            RecordBatch.MAGIC_VALUE_V2, Compression.NONE, TimestampType.CREATE_TIME, first, 0L,
            producerId, (short) (producer ? 0 : -1), producer ? 0 : -1,
            attributes.path("transactional").asBoolean(false), false, 0, BUFFER_SIZE);
        builder.appendWithOffset(first, 0L, (byte[]) null, new byte[] {1});
        builder.overrideLastOffset(last);
        return builder.build().buffer();
    }

    static List<ShareAcknowledgementBatch> ackBatches(JsonNode batches) {
        List<ShareAcknowledgementBatch> l = new ArrayList<>();
        for (JsonNode b : batches) {
            List<Byte> types = new ArrayList<>();
            for (JsonNode t : b.get(2))
                types.add((byte) t.asInt());
            l.add(new ShareAcknowledgementBatch(b.get(0).asLong(), b.get(1).asLong(), types));
        }
        return l;
    }

    // ---- persister answers ----

    /** The exception named by an {"exception"|"throws", "message"} answer or look-up value. */
    static RuntimeException exception(JsonNode answer) {
        String name = answer.get(answer.has("throws") ? "throws" : "exception").asText();
        String message = text(answer.path("message"));
        try {
            return (RuntimeException) Class.forName(name).getConstructor(String.class).newInstance(message);
        } catch (ReflectiveOperationException | ClassCastException e) {
            return new RuntimeException(message);
        }
    }

    static void finishRead(CompletableFuture<ReadShareGroupStateResult> f, JsonNode answer, Uuid topicId) {
        if (settled(f, answer))
            return;
        f.complete(new ReadShareGroupStateResult.Builder().setTopicsData(topics(answer, topicId, (p, a) ->
            PartitionFactory.newPartitionAllData(p, a.path("state_epoch").asInt(0), a.path("start_offset").asLong(0),
                errorCode(a), text(a.path("message")), stateBatches(a.path("state_batches"))))).build());
    }

    static void finishWrite(CompletableFuture<WriteShareGroupStateResult> f, JsonNode answer, Uuid topicId) {
        if (settled(f, answer))
            return;
        f.complete(new WriteShareGroupStateResult.Builder().setTopicsData(topics(answer, topicId, (p, a) ->
            PartitionFactory.newPartitionErrorData(p, errorCode(a), text(a.path("message"))))).build());
    }

    private static boolean settled(CompletableFuture<?> f, JsonNode answer) {
        if (answer.has("exception"))
            return f.completeExceptionally(exception(answer));
        return answer.asText().equals("null") && f.complete(null);
    }

    /** One well-formed topic, or the malformed ones spelled out by {"topics": ...}. */
    private static <T extends PartitionInfoData> List<TopicData<T>> topics(
            JsonNode answer, Uuid topicId, BiFunction<Integer, JsonNode, T> data) {
        if (!answer.has("topics"))
            return List.of(new TopicData<>(topicId, List.of(data.apply(0, answer))));
        if (answer.get("topics").isNull())
            return null;
        List<TopicData<T>> l = new ArrayList<>();
        for (JsonNode t : answer.get("topics")) {
            List<T> partitions = new ArrayList<>();
            for (JsonNode p : t.get("partitions"))
                partitions.add(data.apply(p.get("partition").asInt(), p.get("answer")));
            l.add(new TopicData<>(t.get("same_topic_id").asBoolean() ? topicId : Uuid.randomUuid(), partitions));
        }
        return l;
    }

    private static short errorCode(JsonNode answer) {
        return answer.hasNonNull("error") ? Errors.valueOf(answer.get("error").asText()).code() : Errors.NONE.code();
    }

    private static String text(JsonNode node) {
        return node.isTextual() ? node.asText() : null;
    }

    private static List<PersisterStateBatch> stateBatches(JsonNode batches) {
        List<PersisterStateBatch> l = new ArrayList<>();
        for (JsonNode b : batches) {
            l.add(new PersisterStateBatch(b.get(0).asLong(), b.get(1).asLong(),
                (byte) b.get(2).asInt(), (short) b.get(3).asInt()));
        }
        return l;
    }
}
