/* The resources of the CoAP measurements with libcoap; peers/README.md says what such a server does. */
#include <arpa/inet.h>
#include <coap3/coap.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void answer(coap_pdu_t *response, const char *text) {
  uint8_t format[4];
  size_t length = coap_encode_var_safe(format, sizeof format, COAP_MEDIATYPE_TEXT_PLAIN);
  coap_pdu_set_code(response, COAP_RESPONSE_CODE_CONTENT);
  coap_add_option(response, COAP_OPTION_CONTENT_FORMAT, length, format);
  coap_add_data(response, strlen(text), (const uint8_t *)text);
}

/* The number in the first argument, "name=NUMBER"; 0 without a query, -1 for another text. Others may follow it. */
static long number(const coap_string_t *query, const char *name) {
  char text[64];
  size_t prefix = strlen(name);
  if (query == NULL || query->length == 0)
    return 0;
  const uint8_t *rest = memchr(query->s, '&', query->length);
  size_t length = rest == NULL ? query->length : (size_t)(rest - query->s);
  if (length >= sizeof text || length <= prefix || memcmp(query->s, name, prefix) != 0)
    return -1;
  memcpy(text, query->s, length);
  text[length] = 0;
  char *end;
  long value = strtol(text + prefix, &end, 10);
  return *end == 0 && value >= 0 ? value : -1;
}

static void handle_request(coap_resource_t *resource, coap_session_t *session, const coap_pdu_t *request,
                           const coap_string_t *query, coap_pdu_t *response) {
  (void)resource, (void)session, (void)request, (void)query;
  answer(response, "hello world");
}

static void handle_slow(coap_resource_t *resource, coap_session_t *session, const coap_pdu_t *request,
                        const coap_string_t *query, coap_pdu_t *response) {
  (void)resource, (void)session, (void)request;
  long milliseconds = number(query, "ms=");
  if (milliseconds < 0) {
    coap_pdu_set_code(response, COAP_RESPONSE_CODE_BAD_REQUEST);
    return;
  }
  struct timespec rest = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  while (nanosleep(&rest, &rest) != 0)
    ;
  char text[64];
  snprintf(text, sizeof text, "waited %ld ms", milliseconds);
  answer(response, text);
}

static long nanoseconds_since(const struct timespec *start) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (now.tv_sec - start->tv_sec) * 1000000000 + now.tv_nsec - start->tv_nsec;
}

static void handle_busy(coap_resource_t *resource, coap_session_t *session, const coap_pdu_t *request,
                        const coap_string_t *query, coap_pdu_t *response) {
  (void)resource, (void)session, (void)request;
  long microseconds = number(query, "us=");
  if (microseconds < 0) {
    coap_pdu_set_code(response, COAP_RESPONSE_CODE_BAD_REQUEST);
    return;
  }
  struct timespec start;
  clock_gettime(CLOCK_MONOTONIC, &start);
  while (nanoseconds_since(&start) < microseconds * 1000)
    ;
  char text[64];
  snprintf(text, sizeof text, "computed for %ld us", microseconds);
  answer(response, text);
}

static void add(coap_context_t *context, const char *path, coap_method_handler_t handler) {
  coap_resource_t *resource = coap_resource_init(coap_make_str_const(path), 0);
  coap_register_request_handler(resource, COAP_REQUEST_GET, handler);
  coap_add_resource(context, resource);
}

/* Ends the process with its standard input. */
static void *watch_input(void *unused) {
  char bytes[64];
  (void)unused;
  while (read(STDIN_FILENO, bytes, sizeof bytes) > 0)
    ;
  _exit(0);
}

static int fail(const char *reason) {
  fprintf(stderr, "error: %s\n", reason);
  return 2;
}

int main(int count, char **arguments) {
  if (count == 2 && strcmp(arguments[1], "--version") == 0) {
    puts(coap_package_version());
    return 0;
  }
  if (count != 3 || strcmp(arguments[1], "--bind") != 0)
    return fail("the only option is --bind ADDRESS:PORT");
  char host[INET_ADDRSTRLEN] = "";
  char *colon = strrchr(arguments[2], ':');
  if (colon == NULL || (size_t)(colon - arguments[2]) >= sizeof host)
    return fail("--bind needs ADDRESS:PORT");
  memcpy(host, arguments[2], colon - arguments[2]);
  coap_address_t address;
  coap_address_init(&address);
  address.size = sizeof address.addr.sin;
  address.addr.sin.sin_family = AF_INET;
  address.addr.sin.sin_port = htons((uint16_t)atoi(colon + 1));
  if (inet_pton(AF_INET, host, &address.addr.sin.sin_addr) != 1)
    return fail("--bind needs an IPv4 address");
  coap_startup();
  coap_context_t *context = coap_new_context(NULL);
  if (context == NULL || coap_new_endpoint(context, &address, COAP_PROTO_UDP) == NULL)
    return fail("the address cannot be used");
  add(context, "request", handle_request);
  add(context, "slow", handle_slow);
  add(context, "busy", handle_busy);
  pthread_t watcher;
  if (pthread_create(&watcher, NULL, watch_input, NULL) != 0)
    return fail("there is no thread to watch the input");
  printf("serving coap://%s\n", arguments[2]);
  fflush(stdout);
  while (coap_io_process(context, COAP_IO_WAIT) >= 0)
    ;
  return fail("libcoap ended its loop");
}
