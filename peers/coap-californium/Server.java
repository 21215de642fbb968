import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.function.LongConsumer;
import org.eclipse.californium.core.CoapResource;
import org.eclipse.californium.core.CoapServer;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.core.server.resources.CoapExchange;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.config.UdpConfig;

/** The resources of the CoAP measurements with Californium; {@code peers/README.md} says what such a server does. */
public final class Server {
    /** As in {@code pom.xml}: the archive does not tell. */
    private static final String VERSION = "3.14.0";

    public static void main(String[] arguments) throws IOException {
        String bind = null;
        CoapConfig.register();
        UdpConfig.register();
        // Not the file beside the program, which another run may have changed.
        Configuration configuration = new Configuration();
        for (int index = 0; index < arguments.length; index++) {
            switch (arguments[index]) {
                case "--version" -> {
                    System.out.println("Californium " + VERSION);
                    return;
                }
                case "--no-deduplication" ->
                    configuration.set(CoapConfig.DEDUPLICATOR, CoapConfig.NO_DEDUPLICATOR);
                case "--bind" -> bind = index + 1 < arguments.length ? arguments[++index] : null;
                default -> fail("unknown option " + arguments[index]);
            }
        }
        int colon = bind == null ? -1 : bind.lastIndexOf(':');
        if (colon < 0) {
            fail("--bind ADDRESS:PORT is missing");
        }
        InetAddress address = InetAddress.getByName(bind.substring(0, colon));
        int port = Integer.parseInt(bind.substring(colon + 1));
        CoapServer server = new CoapServer(configuration);
        server.addEndpoint(CoapEndpoint.builder()
                .setConfiguration(configuration)
                .setInetSocketAddress(new InetSocketAddress(address, port))
                .build());
        server.add(new Greeting());
        server.add(new Work("slow", "ms", "waited %d ms", Server::sleep));
        server.add(new Work("busy", "us", "computed for %d us", Server::compute));
        server.start();
        System.out.println("serving coap://" + bind);
        while (System.in.read() >= 0) {
            // Nothing is said; the end of the input ends the server.
        }
        System.exit(0);
    }

    private static void fail(String reason) {
        System.err.println("error: " + reason);
        System.exit(2);
    }

    private static void sleep(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException interruption) {
            Thread.currentThread().interrupt();
        }
    }

    private static void compute(long microseconds) {
        long start = System.nanoTime();
        while (System.nanoTime() - start < microseconds * 1_000) {
            Thread.onSpinWait();
        }
    }

    private static final class Greeting extends CoapResource {
        Greeting() {
            super("request");
        }

        @Override
        public void handleGET(CoapExchange exchange) {
            exchange.respond("hello world");
        }
    }

    /** Does something for as long as the query says. */
    private static final class Work extends CoapResource {
        private final String parameter;
        private final String answer;
        private final LongConsumer act;

        Work(String name, String parameter, String answer, LongConsumer act) {
            super(name);
            this.parameter = parameter;
            this.answer = answer;
            this.act = act;
        }

        @Override
        public void handleGET(CoapExchange exchange) {
            String text = exchange.getQueryParameter(parameter);
            long length;
            try {
                length = text == null ? 0 : Long.parseLong(text);
            } catch (NumberFormatException error) {
                exchange.respond(ResponseCode.BAD_REQUEST);
                return;
            }
            act.accept(length);
            exchange.respond(String.format(answer, length));
        }
    }
}
