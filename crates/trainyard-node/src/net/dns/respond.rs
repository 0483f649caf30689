//! How a query is answered from the table of names: which code, which records, how large. Pure; what it
//! cannot answer it hands back as a [`Reaction`].

use hickory_proto::{
    op::{Edns, Message, MessageType, Metadata, OpCode, Query, ResponseCode},
    rr::{
        DNSClass, Name, RData, Record, RecordType,
        rdata::{CNAME, PTR, SOA},
    },
};

use crate::net::{
    CLUSTER_DOMAIN,
    names::{Answer, Names, Owner},
};

/// Seconds that an answer may be kept: names come and go with pods.
const TTL: u32 = 5;
/// Largest datagram that crosses any network in one piece.
const LARGEST: u16 = 1232;
/// Names that stand for names, in a row.
const HOPS: usize = 8;

/// What to do about a packet.
#[derive(Debug)]
pub(super) enum Reaction {
    /// Nothing: it is no query.
    Ignore,
    /// Send this.
    Reply(Vec<u8>),
    /// Pass it on as it is.
    Forward(Box<Query>),
    /// Ask others for what the name stands for, then answer.
    Chase(Box<Chase>),
}

/// An answer that lacks what a name outside has.
#[derive(Debug)]
pub(super) struct Chase {
    reply: Message,
    target: Name,
    kind: RecordType,
    limit: usize,
}

impl Chase {
    /// What to ask others.
    pub(super) fn query(&self) -> Message {
        let mut query = Message::query();
        query.metadata.recursion_desired = true;
        query.add_query(Query::query(self.target.clone(), self.kind));
        query
    }

    /// The answer with what others said.
    pub(super) fn complete(self, said: &[u8]) -> Option<Vec<u8>> {
        let said = Message::from_vec(said).ok()?;
        let Self { mut reply, limit, .. } = self;
        reply.metadata.response_code = said.metadata.response_code;
        reply.metadata.truncation = said.metadata.truncation;
        reply.add_answers(said.answers);
        encode(&reply, limit)
    }
}

/// What to do about a packet. `limit` is how many bytes an answer may have; none: what the asker takes
/// as a datagram.
pub(super) fn react(packet: &[u8], names: &Names, limit: Option<usize>) -> Reaction {
    let Ok(query) = Message::from_vec(packet) else { return Reaction::Ignore };
    // An answer to an answer could go round for ever.
    if query.metadata.message_type != MessageType::Query {
        return Reaction::Ignore;
    }
    let limit = limit.unwrap_or_else(|| usize::from(query.max_payload().min(LARGEST)));
    let reply = reply_to(&query);
    let refuse = |code| finish(refusal(reply.clone(), code), limit);
    if query.metadata.op_code != OpCode::Query {
        return refuse(ResponseCode::NotImp);
    }
    let [question] = &query.queries[..] else { return refuse(ResponseCode::FormErr) };
    if query.version() > 0 {
        return refuse(ResponseCode::BADVERS);
    }
    if question.query_class() != DNSClass::IN {
        return refuse(ResponseCode::Refused);
    }
    match address_of(question) {
        Some(address) => reverse(names.owner(address), question, reply, limit),
        None => by_name(names, question, reply, limit),
    }
}

/// The answer to a query that nobody could answer in time.
pub(super) fn failure(packet: &[u8]) -> Option<Vec<u8>> {
    let query = Message::from_vec(packet).ok()?;
    let reply = refusal(reply_to(&query), ResponseCode::ServFail);
    encode(&reply, usize::from(query.max_payload().min(LARGEST)))
}

fn reply_to(query: &Message) -> Message {
    let mut reply = Message::response(query.metadata.id, query.metadata.op_code);
    reply.metadata = Metadata::response_from_request(&query.metadata);
    reply.metadata.recursion_available = true;
    reply.add_queries(query.queries.iter().cloned());
    if query.edns.is_some() {
        let mut edns = Edns::new();
        edns.set_max_payload(LARGEST).set_version(0);
        reply.set_edns(edns);
    }
    reply
}

fn refusal(mut reply: Message, code: ResponseCode) -> Message {
    reply.metadata.response_code = code;
    reply
}

/// The address whose name is asked for.
fn address_of(question: &Query) -> Option<std::net::Ipv4Addr> {
    if question.query_type() != RecordType::PTR || question.name().num_labels() != 6 {
        return None;
    }
    match question.name().parse_arpa_name() {
        Ok(network) => match network.addr() {
            std::net::IpAddr::V4(address) => Some(address),
            std::net::IpAddr::V6(_) => None,
        },
        Err(_) => None,
    }
}

fn reverse(owner: Owner, question: &Query, mut reply: Message, limit: usize) -> Reaction {
    reply.metadata.authoritative = true;
    match owner {
        Owner::Elsewhere => return Reaction::Forward(Box::new(question.clone())),
        Owner::Nameless => reply.metadata.response_code = ResponseCode::NXDomain,
        Owner::Known(known) => {
            for name in known.iter().filter_map(|name| absolute(name)) {
                let record = RData::PTR(PTR(name));
                reply.add_answer(Record::from_rdata(question.name().clone(), TTL, record));
            }
        }
    }
    finish(reply, limit)
}

fn by_name(names: &Names, question: &Query, mut reply: Message, limit: usize) -> Reaction {
    let kind = question.query_type();
    let mut name = question.name().clone();
    for hop in 0..=HOPS {
        match names.lookup(&name.to_ascii()) {
            Answer::Elsewhere if hop == 0 => return Reaction::Forward(Box::new(question.clone())),
            Answer::Elsewhere => {
                return Reaction::Chase(Box::new(Chase { reply, target: name, kind, limit }));
            }
            Answer::Unknown => {
                reply.metadata.response_code = ResponseCode::NXDomain;
                break;
            }
            Answer::Found(mut addresses) => {
                if matches!(kind, RecordType::A | RecordType::ANY) && !addresses.is_empty() {
                    // Each query begins at another address, so that clients which take the first one
                    // spread; a query's number is as good as a die.
                    let first = usize::from(reply.metadata.id) % addresses.len();
                    addresses.rotate_left(first);
                    let record =
                        |address| Record::from_rdata(name.clone(), TTL, RData::from(address));
                    reply.add_answers(addresses.into_iter().map(record));
                }
                break;
            }
            Answer::Alias(target) => {
                let Some(target) = absolute(&target).filter(|_| hop < HOPS) else {
                    reply.metadata.response_code = ResponseCode::ServFail;
                    break;
                };
                let record = RData::CNAME(CNAME(target.clone()));
                reply.add_answer(Record::from_rdata(name, TTL, record));
                if matches!(kind, RecordType::CNAME | RecordType::ANY) {
                    break;
                }
                name = target;
            }
        }
    }
    reply.metadata.authoritative = reply.metadata.response_code != ResponseCode::ServFail;
    finish(reply, limit)
}

/// A name with its final dot; none if it is not one.
fn absolute(name: &str) -> Option<Name> {
    let mut name = Name::from_ascii(name).ok()?;
    name.set_fqdn(true);
    Some(name)
}

/// Says how long a "no" holds, and sends the answer.
fn finish(mut reply: Message, limit: usize) -> Reaction {
    if reply.metadata.authoritative
        && reply.answers.is_empty()
        && let Some(soa) = start_of_authority()
    {
        reply.add_authority(soa);
    }
    match encode(&reply, limit) {
        Some(bytes) => Reaction::Reply(bytes),
        None => Reaction::Ignore,
    }
}

fn start_of_authority() -> Option<Record> {
    let zone = absolute(CLUSTER_DOMAIN)?;
    let server = zone.prepend_label("dns").ok()?.prepend_label("ns").ok()?;
    let contact = zone.prepend_label("hostmaster").ok()?;
    let soa = SOA::new(server, contact, 1, 7200, 1800, 86400, TTL);
    Some(Record::from_rdata(zone, TTL, RData::SOA(soa)))
}

/// An answer that is too large says so instead, and the asker comes again by TCP.
fn encode(reply: &Message, limit: usize) -> Option<Vec<u8>> {
    let bytes = reply.to_vec().ok()?;
    if bytes.len() <= limit { Some(bytes) } else { reply.truncate().to_vec().ok() }
}
