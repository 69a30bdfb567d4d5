package kafka.server.share;

import static kafka.server.share.RecordedRequests.answer;
import static kafka.server.share.Responses.field;
import static kafka.server.share.Responses.get;
import static kafka.server.share.Responses.map;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.timer.Timer;
import org.mockito.Mockito;

/** One share partition of the running test. */
final class Recorded {
    private static final Field TIMER = field(SharePartition.class, "timer");
    private static final Field TIME = field(SharePartition.class, "time");
    private static final Field TOPIC_ID_PARTITION = field(SharePartition.class, "topicIdPartition");

    int index;
    int writes;
    int futures;
    SharePartition sp;
    String name;
    long origin;
    long timeMs;
    String lastState;
    Object config;
    Object readAnswer;
    final List<Object> events = new ArrayList<>();
    final List<Object> answers = new ArrayList<>();
    final Map<String, Object> lookup = new LinkedHashMap<>();

    Time time() {
        return (Time) get(TIME, sp);
    }

    Timer timer() {
        return (Timer) get(TIMER, sp);
    }

    TopicIdPartition topicIdPartition() {
        return (TopicIdPartition) get(TOPIC_ID_PARTITION, sp);
    }

    /** A mocked clock is never read: its stubbed answers may be a sequence. */
    long now() {
        return Mockito.mockingDetails(time()).isMock() ? 0 : time().hiResClockMs();
    }

    Map<String, Object> state() {
        return Responses.state(sp, origin);
    }

    Object answerOf(CompletableFuture<?> f) {
        return answer(f, topicIdPartition().topicId(), topicIdPartition().partition());
    }

    Map<String, Object> request(String op, Object... keysAndValues) {
        Map<String, Object> request = map("op", op);
        if (index > 0)
            request.put("key", String.valueOf(index));
        request.putAll(map(keysAndValues));
        return request;
    }
}
