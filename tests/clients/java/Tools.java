import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.common.utils.Exit;

/**
 * Kafka's command line tools, one after the other in one JVM: a line of JSON says which class is to run and with what,
 * and another line what it has printed and with which status it would have ended.
 */
public final class Tools {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** A tool has ended, and whatever it does on its way out of its main method is not heard any more. */
    private static final class EndedError extends Error {}

    private static Integer status;

    private Tools() {}

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        Exit.setExitProcedure((ended, message) -> end(ended));
        Exit.setHaltProcedure((ended, message) -> end(ended));
        Exit.setShutdownHookAdder((name, hook) -> { }); // nothing is left to do when a tool has ended by itself
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.println(JSON.writeValueAsString(ran(JSON.readTree(line))));
        }
    }

    private static Map<String, Object> ran(JsonNode asked) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        PrintStream printed = new PrintStream(out, true, StandardCharsets.UTF_8);
        System.setOut(printed);
        System.setErr(printed);
        System.setIn(new ByteArrayInputStream(asked.get("in").asText().getBytes(StandardCharsets.UTF_8)));
        status = null;
        try {
            Object given = JSON.convertValue(asked.get("arguments"), String[].class);
            Class.forName(asked.get("main").asText()).getMethod("main", String[].class).invoke(null, given);
            status = status == null ? 0 : status;
        } catch (InvocationTargetException error) {
            if (status == null) {
                error.getCause().printStackTrace();
                status = 1;
            }
        }
        Map<String, Object> answer = new TreeMap<>();
        answer.put("status", status);
        answer.put("out", out.toString(StandardCharsets.UTF_8));
        return answer;
    }

    private static void end(int ended) {
        status = status == null ? ended : status;
        System.setOut(new PrintStream(OutputStream.nullOutputStream()));
        System.setErr(new PrintStream(OutputStream.nullOutputStream()));
        throw new EndedError();
    }
}
