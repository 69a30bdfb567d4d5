import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** A broker of one test: the command {@code sharestate broker}, as a process. */
final class ShareBroker implements AutoCloseable {
    /** What the command is called, if it is not in the path by its name. */
    private static final String COMMAND =
        System.getenv().getOrDefault("SHARESTATE", "sharestate");

    final String bootstrapServers;
    private final Process process;
    private final Socket control;
    private final PrintStream commands;
    private final BufferedReader answers;

    /** Starts a broker with more options, such as {@code --standing-clock}. */
    ShareBroker(String... options) throws IOException {
        List<String> command = new ArrayList<>(List.of(COMMAND.split(" ")));
        command.addAll(List.of("broker", "--quick", "--quiet", "--control-port", "0"));
        command.addAll(List.of("--set", "share.auto.offset.reset=earliest"));
        command.addAll(List.of(options));
        process = new ProcessBuilder(command)
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
        BufferedReader lines = process.inputReader();
        bootstrapServers = lines.readLine(); // comes when clients can connect
        String second = lines.readLine(); // control HOST:PORT
        if (bootstrapServers == null || second == null) {
            throw new IOException("the broker has not begun: " + command);
        }
        String[] address = second.split("[ :]");
        control = new Socket(address[1], Integer.parseInt(address[2]));
        commands = new PrintStream(control.getOutputStream(), true, StandardCharsets.UTF_8);
        answers = new BufferedReader(
            new InputStreamReader(control.getInputStream(), StandardCharsets.UTF_8));
    }

    /** Sends a command, and returns its answer; both are lines of JSON. */
    String ask(String command) throws IOException {
        commands.println(command);
        String answer = answers.readLine();
        if (answer == null || !answer.startsWith("{\"ok\"")) {
            throw new IOException(command + ": " + answer);
        }
        return answer;
    }

    /** Lets time pass; its clock has to stand. */
    void advance(Duration time) throws IOException {
        ask("{\"advance_ms\": " + time.toMillis() + "}");
    }

    @Override
    public void close() throws IOException, InterruptedException {
        control.close();
        process.destroy();
        process.waitFor();
    }
}
