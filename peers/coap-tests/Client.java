import java.util.Arrays;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.eclipse.californium.core.CoapClient;
import org.eclipse.californium.core.CoapHandler;
import org.eclipse.californium.core.CoapObserveRelation;
import org.eclipse.californium.core.CoapResponse;
import org.eclipse.californium.core.coap.CoAP.Code;
import org.eclipse.californium.core.coap.CoAP.Type;
import org.eclipse.californium.core.coap.Option;
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.core.network.EndpointManager;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.config.UdpConfig;

/** The steps of the CoAP tests with Californium as client; {@code peers/README.md} has them. */
public final class Client {
    private static final long PATIENCE_SECONDS = 30;

    private final CoapClient client = new CoapClient();
    private final String base;

    private Client(String base) {
        this.base = base;
        client.setTimeout(TimeUnit.SECONDS.toMillis(PATIENCE_SECONDS));
    }

    public static void main(String[] arguments) throws Exception {
        CoapConfig.register();
        UdpConfig.register();
        Configuration configuration = new Configuration();
        configuration.set(CoapConfig.MAX_RESOURCE_BODY_SIZE, 2 << 20);
        configuration.set(CoapConfig.PREFERRED_BLOCK_SIZE, 1024);
        CoapEndpoint endpoint = CoapEndpoint.builder().setConfiguration(configuration).build();
        EndpointManager.getEndpointManager().setDefaultEndpoint(endpoint);
        if (arguments[1].startsWith("coaps:")) {
            // The credentials follow the address.
            String[] credentials = Arrays.copyOfRange(arguments, 2, arguments.length);
            EndpointManager.getEndpointManager().setDefaultEndpoint(Dtls.client(configuration, credentials));
        }
        Client client = new Client(arguments[1]);
        if (arguments[0].equals("get")) {
            client.ask("get", client.request(Code.GET, ""));
        } else {
            client.smallSteps();
            client.observe();
            client.ask("delete", client.request(Code.DELETE, "/note"));
            client.ask("up", client.request(Code.PUT, "/body").setPayload(Body.BYTES));
            client.ask("down", client.request(Code.GET, "/body"));
        }
        System.exit(0);
    }

    private void smallSteps() throws Exception {
        ask("con", request(Code.GET, "/hello"));
        Request non = request(Code.GET, "/hello");
        non.setType(Type.NON);
        ask("non", non);
        ask("slow", request(Code.GET, "/slow?ms=1500"));
        ask("core", request(Code.GET, "/.well-known/core?rt=lamp"));
        ask("missing", request(Code.GET, "/missing"));
        ask("critical", unknown(65001));
        ask("elective", unknown(65000));
        ask("put", request(Code.PUT, "/note").setPayload("start"));
        ask("post", request(Code.POST, "/note").setPayload("ed"));
        ask("get", request(Code.GET, "/note"));
        ask("ipatch", request(Code.IPATCH, "/settings").setPayload("color=red"));
        ask("fetch", request(Code.FETCH, "/settings").setPayload("color"));
        tell("ping", "0.00", String.valueOf(client.setURI(base).ping(TimeUnit.SECONDS.toMillis(PATIENCE_SECONDS))));
    }

    /** Each state is awaited before the next one is put, so that none may be left out. */
    private void observe() throws Exception {
        BlockingQueue<CoapResponse> states = new LinkedBlockingQueue<>();
        CoapHandler handler = new CoapHandler() {
            @Override
            public void onLoad(CoapResponse response) {
                states.add(response);
            }

            @Override
            public void onError() {
                System.err.println("error: the observation failed");
            }
        };
        CoapObserveRelation relation = client.observe(request(Code.GET, "/note").setObserve(), handler);
        tell("observe", next(states));
        for (String text : new String[] {"one", "two", "three"}) {
            client.advanced(request(Code.PUT, "/note").setPayload(text));
            tell("notification", next(states));
        }
        relation.proactiveCancel();
        next(states);
    }

    private static CoapResponse next(BlockingQueue<CoapResponse> states) throws InterruptedException {
        CoapResponse state = states.poll(PATIENCE_SECONDS, TimeUnit.SECONDS);
        if (state == null) {
            throw new IllegalStateException("no notification came");
        }
        return state;
    }

    private Request request(Code code, String target) {
        Request request = new Request(code);
        request.setURI(base + target);
        return request;
    }

    private Request unknown(int number) {
        Request request = request(Code.GET, "/hello");
        request.getOptions().addOption(new Option(number, new byte[] {'x'}));
        return request;
    }

    private void ask(String step, Request request) throws Exception {
        CoapResponse response = client.advanced(request);
        if (response == null) {
            throw new IllegalStateException("no response to " + step);
        }
        tell(step, response);
    }

    private static void tell(String step, CoapResponse response) {
        byte[] payload = response.getPayload();
        boolean isBody = payload.length == Body.BYTES.length;
        tell(step, response.getCode().text, isBody ? "body " + same(payload) : response.getResponseText());
    }

    private static String same(byte[] payload) {
        return Arrays.equals(payload, Body.BYTES) ? "True" : "False";
    }

    private static void tell(String step, String code, String text) {
        System.out.println(step + "\t" + code + "\t" + text);
    }
}
