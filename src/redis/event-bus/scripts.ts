/** The scripts of the event bus: a topic counts and publishes in one step, and says where it stands. */
import { defineBare } from '../store/script.js'

/** How long a topic is remembered that nobody has published to and no node has asked about. */
const KEPT_MS = 600_000
/** How long a publication is known by its name: longer than any sender goes on trying. */
const SENT_MS = 30_000
/** As many of one topic at most. */
const SENT_MAX = 10_000
/** Topics of one user in a shard; beyond, its oldest starts a new epoch. */
const TOPICS_PER_USER = 10_000

// `bus:topic:<topic>`: a hash, epoch and seq; `bus:on:<topic>`: its channel; `bus:sent:<topic>`: names of publications
// by time, so that one that arrives twice is one; `bus:of:<user>`: the user's topics by when they were begun. A node that has
// seen more than the store holds tells of a store that has lost something: the count starts again under a new name. So it does when what is held
// is no position that we would have written, or the last that a number can carry; `spoilt` says so.
const TOPIC = `
local function standing(topic, epoch, seq, fresh)
  local key = K('bus', 'topic', topic)
  local held = redis.call('HMGET', key, 'epoch', 'seq')
  local e, s = held[1], held[2] or '0'
  local spoilt = 0
  if e then
    local counts = (s == '0' or string.find(s, '^[1-9]%d*$')) and tonumber(s) < ${Number.MAX_SAFE_INTEGER}
    if string.find(e, '%c') or not counts then e, spoilt = false, 1 end
  end
  s = tonumber(s)
  if not e or (e == epoch and s < tonumber(seq)) then
    e, s = fresh, 0
    redis.call('HSET', key, 'epoch', e, 'seq', s)
    local of = K('bus', 'of', string.match(topic, '^users/([^/]+)/') or '')
    redis.call('ZADD', of, now, topic)
    redis.call('PEXPIRE', of, ${KEPT_MS})
    if redis.call('ZCARD', of) > ${TOPICS_PER_USER} then
      redis.call('DEL', K('bus', 'topic', redis.call('ZPOPMIN', of)[1]))
    end
  end
  redis.call('PEXPIRE', key, ${KEPT_MS})
  return key, e, s, spoilt
end
`

/** What PUBLISH answers: what was held was spoilt; the topic has had the event. */
export const SPOILT = 1
export const REPEATED = 2

/** Events of one topic that are remembered by their ids, for as long as the topic. */
const HAD = 1_000

/**
 * ARGV: 2 topic, 3 event, 4 a fresh epoch, 5 and 6 the position that the publisher knows, 7 the id under which the topic
 * may have had the event, or nothing, 8 the name of this publication.
 */
export const PUBLISH = defineBare(`${TOPIC}
local sent = K('bus', 'sent', ARGV[2])
redis.call('ZREMRANGEBYSCORE', sent, '-inf', now - ${SENT_MS})
-- A client that sends again after a lost connection does not know that the first one has arrived.
if redis.call('ZSCORE', sent, ARGV[8]) then return 0 end
local id, had = ARGV[7], K('bus', 'had', ARGV[2])
if id ~= '' then
  redis.call('ZREMRANGEBYSCORE', had, '-inf', now - ${KEPT_MS})
  if redis.call('ZSCORE', had, id) then return ${REPEATED} end
end
redis.call('ZADD', sent, now, ARGV[8])
redis.call('ZREMRANGEBYRANK', sent, 0, -${SENT_MAX + 1})
redis.call('PEXPIRE', sent, ${SENT_MS})
local key, epoch, _, spoilt = standing(ARGV[2], ARGV[5], ARGV[6], ARGV[4])
local seq = redis.call('HINCRBY', key, 'seq', 1)
redis.call('SPUBLISH', K('bus', 'on', ARGV[2]), epoch .. '\\n' .. seq .. '\\n' .. ARGV[3])
if id ~= '' then
  redis.call('ZADD', had, now, id)
  redis.call('ZREMRANGEBYRANK', had, 0, -${HAD} - 1)
  redis.call('PEXPIRE', had, ${KEPT_MS})
end
return spoilt`)

/**
 * ARGV: 2 a fresh epoch, then topic, epoch and seq as the node knows them, again and again. Answers epoch and seq of
 * each, and whether what was held was spoilt.
 */
export const STAND = defineBare(`${TOPIC}
local found = {}
for i = 3, #ARGV, 3 do
  local _, epoch, seq, spoilt = standing(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[2] .. '-' .. i)
  found[#found + 1] = epoch
  found[#found + 1] = seq
  found[#found + 1] = spoilt
end
return found`)
