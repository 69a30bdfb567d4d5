import java.io.File;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Locale;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;

/**
 * Writes log segments with Kafka's own classes, and reads segments with them.
 *
 * <p>java -cp JARS Segments.java write DIRECTORY; java -cp JARS Segments.java read FILE... > batches.jsonl
 */
public class Segments {
    static final long NOW = 1795262002057L;

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("write")) {
            write(Path.of(arguments[1]));
        } else {
            for (int i = 1; i < arguments.length; i++) read(arguments[i]);
        }
    }

    // ---- write

    static void write(Path directory) throws Exception {
        for (CompressionType type : CompressionType.values()) {
            ByteBuffer buffer = ByteBuffer.allocate(1 << 16);
            builder(buffer, Compression.of(type).build(), TimestampType.CREATE_TIME, 0, -1, false, 20).close();
            builder(buffer, Compression.of(type).build(), TimestampType.LOG_APPEND_TIME, 20, 7, true, 5).close();
            save(directory, type.name.toLowerCase(Locale.ROOT) + ".log", buffer);
        }
        ByteBuffer kinds = ByteBuffer.allocate(1 << 16);
        builder(kinds, Compression.NONE, TimestampType.CREATE_TIME, 0, 7, true, 3).close();
        MemoryRecords.writeEndTransactionalMarker(kinds, 3, NOW, 4, 7, (short) 1, new EndTransactionMarker(ControlRecordType.ABORT, 9));
        MemoryRecords.writeEndTransactionalMarker(kinds, 4, NOW, 4, 7, (short) 1, new EndTransactionMarker(ControlRecordType.COMMIT, 9));
        DefaultRecordBatch.writeEmptyHeader(kinds, RecordBatch.MAGIC_VALUE_V2, 8, (short) 2, 3, 5, 9, 4, TimestampType.CREATE_TIME, NOW, false, false);
        MemoryRecordsBuilder bare = builder(kinds, Compression.NONE, TimestampType.CREATE_TIME, 10, -1, false, 0);
        bare.appendWithOffset(10, NOW - 5, (byte[]) null, null, new Header[0]);
        bare.appendWithOffset(13, NOW + 3, new byte[0], new byte[0], new Header[] {new RecordHeader("h", (byte[]) null)});
        bare.close();
        save(directory, "kinds.log", kinds);
        for (byte magic = 0; magic < 2; magic++) {
            ByteBuffer old = ByteBuffer.allocate(1 << 16);
            MemoryRecordsBuilder builder = MemoryRecords.builder(old, magic, Compression.NONE, magic == 0 ? TimestampType.NO_TIMESTAMP_TYPE : TimestampType.CREATE_TIME, 0);
            builder.append(magic == 0 ? -1 : NOW, "k".getBytes(), new byte[100]);
            builder.close();
            save(directory, "magic-" + magic + ".log", old);
        }
    }

    static MemoryRecordsBuilder builder(ByteBuffer buffer, Compression compression, TimestampType timestamps, long first, long producer, boolean transactional, int count) {
        MemoryRecordsBuilder builder = MemoryRecords.builder(buffer, RecordBatch.MAGIC_VALUE_V2, compression, timestamps, first, NOW,
            producer, (short) (producer < 0 ? -1 : 1), producer < 0 ? -1 : 0, transactional, 4);
        for (int i = 0; i < count; i++)
            builder.append(NOW + 7 * i - 3, ("key-" + i).getBytes(), "value ".repeat(i + 1).getBytes(), new Header[] {new RecordHeader("n", new byte[] {(byte) i})});
        return builder;
    }

    static void save(Path directory, String name, ByteBuffer buffer) throws Exception {
        buffer.flip();
        byte[] data = new byte[buffer.remaining()];
        buffer.get(data);
        Files.write(directory.resolve(name), data);
    }

    // ---- read

    static void read(String file) throws Exception {
        try (FileRecords records = FileRecords.open(new File(file), false)) {
            for (FileChannelRecordBatch batch : records.batches()) {
                batch.ensureValid();
                List<String> rows = new ArrayList<>();
                String control = "null";
                for (Record record : batch) {
                    if (batch.isControlBatch()) control = quote(ControlRecordType.parse(record.key()).name());
                    List<String> headers = new ArrayList<>();
                    for (Header header : record.headers()) headers.add("[" + quote(header.key()) + "," + base64(header.value()) + "]");
                    rows.add("[" + record.offset() + "," + record.timestamp() + "," + base64(bytes(record.key())) + "," + base64(bytes(record.value())) + "," + headers + "]");
                }
                System.out.println("{\"file\":" + quote(file) + ",\"byte_offset\":" + batch.position() + ",\"size\":" + batch.sizeInBytes()
                    + ",\"first_offset\":" + batch.baseOffset() + ",\"last_offset\":" + batch.lastOffset() + ",\"leader_epoch\":" + batch.partitionLeaderEpoch()
                    + ",\"max_timestamp_ms\":" + batch.maxTimestamp() + ",\"timestamp_type\":" + quote(batch.timestampType().name())
                    + ",\"producer_id\":" + batch.producerId() + ",\"producer_epoch\":" + batch.producerEpoch() + ",\"is_transactional\":" + batch.isTransactional()
                    + ",\"is_control\":" + batch.isControlBatch() + ",\"control\":" + control + ",\"compression\":" + quote(batch.compressionType().name())
                    + ",\"records\":" + rows + "}");
            }
        }
    }

    static byte[] bytes(ByteBuffer buffer) {
        if (buffer == null) return null;
        byte[] data = new byte[buffer.remaining()];
        buffer.duplicate().get(data);
        return data;
    }

    static String base64(byte[] data) {
        return data == null ? "null" : quote(Base64.getEncoder().encodeToString(data));
    }

    static String quote(String text) {
        return '"' + text + '"';
    }
}
