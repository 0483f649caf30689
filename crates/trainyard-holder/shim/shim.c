/*
 * Loaded into programs of pods that share the host's network (LD_PRELOAD): gives every pod a port
 * space and names of its own.
 *
 * - bind() to the wildcard address binds $TRAINYARD_POD_IP instead, a loopback address that only
 *   this pod has. So several pods can listen on one port, and nobody outside the machine reaches
 *   them.
 * - getaddrinfo() and gethostbyname() look into the file $TRAINYARD_HOSTS first, which has the form
 *   of /etc/hosts and is read anew each time, since names come and go.
 *
 * Must not know what pods are. Whatever it cannot handle is left to the C library.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define MOST_ADDRESSES 64
#define LONGEST_LINE 4096

/* The C library's own function of this name. */
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int own_address(struct in_addr *address) {
    const char *text = getenv("TRAINYARD_POD_IP");
    return text != NULL && inet_pton(AF_INET, text, address) == 1;
}

static int option(int socket, int level, int name) {
    int value = 0;
    socklen_t length = sizeof value;
    return getsockopt(socket, level, name, &value, &length) == 0 ? value : -1;
}

/* A datagram socket without a port of its own only asks others, perhaps far away. */
static int serves(int socket, in_port_t port) {
    return port != 0 || option(socket, SOL_SOCKET, SO_TYPE) != SOCK_DGRAM;
}

static int is_wildcard(const struct in6_addr *address) {
    static const uint8_t mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0};
    return IN6_IS_ADDR_UNSPECIFIED(address) || memcmp(address, mapped, sizeof mapped) == 0;
}

int bind(int socket, const struct sockaddr *wanted, socklen_t length) {
    struct in_addr own;
    if (wanted == NULL || !own_address(&own)) {
        return REAL(bind)(socket, wanted, length);
    }
    if (length >= sizeof(struct sockaddr_in) && wanted->sa_family == AF_INET) {
        struct sockaddr_in address;
        memcpy(&address, wanted, sizeof address);
        if (address.sin_addr.s_addr == htonl(INADDR_ANY) && serves(socket, address.sin_port)) {
            address.sin_addr = own;
            return REAL(bind)(socket, (struct sockaddr *)&address, sizeof address);
        }
    }
    if (length >= sizeof(struct sockaddr_in6) && wanted->sa_family == AF_INET6) {
        struct sockaddr_in6 address;
        memcpy(&address, wanted, sizeof address);
        if (is_wildcard(&address.sin6_addr) && serves(socket, address.sin6_port)) {
            if (option(socket, IPPROTO_IPV6, IPV6_V6ONLY) == 1) {
                /* The pod has no address of this kind. */
                errno = EADDRNOTAVAIL;
                return -1;
            }
            memset(&address.sin6_addr, 0, sizeof address.sin6_addr);
            address.sin6_addr.s6_addr[10] = 0xff;
            address.sin6_addr.s6_addr[11] = 0xff;
            memcpy(&address.sin6_addr.s6_addr[12], &own, sizeof own);
            return REAL(bind)(socket, (struct sockaddr *)&address, sizeof address);
        }
    }
    return REAL(bind)(socket, wanted, length);
}

/* Names are the same whatever their case, and with or without a dot at the end. */
static int same_name(const char *one, const char *other) {
    size_t length = strlen(one), others = strlen(other);
    if (length > 0 && one[length - 1] == '.') length--;
    if (others > 0 && other[others - 1] == '.') others--;
    return length == others && length > 0 && strncasecmp(one, other, length) == 0;
}

/* The addresses that the file gives a name, in its order. */
static int look_up(const char *name, struct in_addr *found) {
    const char *path = getenv("TRAINYARD_HOSTS");
    struct in_addr numeric;
    char line[LONGEST_LINE];
    int count = 0;
    if (path == NULL || name == NULL || inet_pton(AF_INET, name, &numeric) == 1) return 0;
    FILE *file = fopen(path, "re");
    if (file == NULL) return 0;
    while (count < MOST_ADDRESSES && fgets(line, sizeof line, file) != NULL) {
        char *rest = NULL;
        line[strcspn(line, "#\r\n")] = '\0';
        char *address = strtok_r(line, " \t", &rest);
        if (address == NULL || inet_pton(AF_INET, address, &found[count]) != 1) continue;
        for (char *word; (word = strtok_r(NULL, " \t", &rest)) != NULL;) {
            if (same_name(word, name)) {
                count++;
                break;
            }
        }
    }
    fclose(file);
    return count;
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **result) {
    struct in_addr found[MOST_ADDRESSES];
    struct addrinfo asked = {0}, *first = NULL, **last = &first;
    int saved = errno;
    int count = look_up(name, found);
    errno = saved;
    if (hints != NULL) asked = *hints;
    if (count == 0 || (asked.ai_flags & AI_NUMERICHOST) != 0) {
        return REAL(getaddrinfo)(name, service, hints, result);
    }
    int names_it = asked.ai_flags & AI_CANONNAME;
    asked.ai_flags = (asked.ai_flags | AI_NUMERICHOST) & ~(AI_CANONNAME | AI_ADDRCONFIG);
    if (asked.ai_family == AF_INET6) asked.ai_flags |= AI_V4MAPPED;
    for (int i = 0; i < count; i++) {
        char text[INET_ADDRSTRLEN];
        if (inet_ntop(AF_INET, &found[i], text, sizeof text) == NULL) continue;
        int error = REAL(getaddrinfo)(text, service, &asked, last);
        if (error != 0) {
            if (first != NULL) freeaddrinfo(first);
            return error == EAI_ADDRFAMILY ? EAI_NONAME : error;
        }
        while (*last != NULL) last = &(*last)->ai_next;
    }
    if (first == NULL) return EAI_NONAME;
    if (names_it != 0) first->ai_canonname = strdup(name);
    *result = first;
    return 0;
}

/* Lays an answer out in a buffer: addresses, then the pointers to them, then the name. */
static int fill(const char *name, struct hostent *entry, char *buffer, size_t room) {
    struct in_addr found[MOST_ADDRESSES];
    int count = look_up(name, found);
    if (count == 0) return 0;
    uintptr_t skew = (uintptr_t)buffer % sizeof(char *);
    size_t padding = skew == 0 ? 0 : sizeof(char *) - skew;
    size_t pointers = ((size_t)count + 2) * sizeof(char *);
    size_t addresses = (size_t)count * sizeof(struct in_addr);
    if (room < padding + pointers + addresses + strlen(name) + 1) return -1;
    char **list = (char **)(void *)(buffer + padding);
    char *place = buffer + padding + pointers;
    for (int i = 0; i < count; i++, place += sizeof(struct in_addr)) {
        memcpy(place, &found[i], sizeof(struct in_addr));
        list[i] = place;
    }
    list[count] = NULL;
    list[count + 1] = NULL;
    entry->h_name = strcpy(place, name);
    entry->h_aliases = &list[count + 1];
    entry->h_addrtype = AF_INET;
    entry->h_length = sizeof(struct in_addr);
    entry->h_addr_list = list;
    return 1;
}

static __thread struct hostent own_entry;
static __thread char own_buffer[LONGEST_LINE];

struct hostent *gethostbyname(const char *name) {
    if (fill(name, &own_entry, own_buffer, sizeof own_buffer) == 1) return &own_entry;
    return REAL(gethostbyname)(name);
}

struct hostent *gethostbyname2(const char *name, int family) {
    if (family == AF_INET && fill(name, &own_entry, own_buffer, sizeof own_buffer) == 1) {
        return &own_entry;
    }
    return REAL(gethostbyname2)(name, family);
}

int gethostbyname_r(const char *name, struct hostent *entry, char *buffer, size_t room,
                    struct hostent **result, int *error) {
    switch (fill(name, entry, buffer, room)) {
    case 1:
        *result = entry;
        return 0;
    case -1:
        *result = NULL;
        *error = NETDB_INTERNAL;
        return ERANGE;
    default:
        return REAL(gethostbyname_r)(name, entry, buffer, room, result, error);
    }
}

int gethostbyname2_r(const char *name, int family, struct hostent *entry, char *buffer, size_t room,
                     struct hostent **result, int *error) {
    if (family == AF_INET) return gethostbyname_r(name, entry, buffer, room, result, error);
    return REAL(gethostbyname2_r)(name, family, entry, buffer, room, result, error);
}
