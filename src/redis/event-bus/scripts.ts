/** The scripts of the event bus: a topic counts and publishes in one step, and says where it stands. */
import { count, listOf } from '../store/reply.js'
import { defineScript } from '../store/script.js'
import positionsLua from './positions.lua'
import publishLua from './publish.lua'

/** What a publication answers where the topic has had the event. */
const REPEATED = 2

/**
 * `known_epoch` and `known_seq` are the position that the publisher knows, `event_id` is what the topic may have had the
 * event under, or nothing, `published_at` what the event says of itself, and `name` that of this publication. Answers where
 * the event stands, or the topic by now where it had arrived before.
 */
export const PUBLISH = defineScript(
  'event-bus.publish',
  {
    args: ['topic', 'event', 'fresh', 'known_epoch', 'known_seq', 'event_id', 'published_at', 'name'],
    constants: { REPEATED },
    answer: (reply) => {
      if (reply === REPEATED) return { isRepeated: true, isSpoilt: false, position: undefined }
      const [spoilt, epoch, seq = null] = listOf(reply)
      return { isRepeated: false, isSpoilt: spoilt === 1, position: { epoch: String(epoch), seq: count(seq) } }
    },
  },
  publishLua,
)

/** `known` are topic, epoch and seq as the node knows them, again and again. Answers where each topic stands. */
export const POSITIONS = defineScript(
  'event-bus.stand',
  {
    args: ['fresh'],
    rest: 'known',
    answer: (reply) => {
      const found = listOf(reply)
      return Array.from({ length: found.length / 3 }, (_, i) => ({
        epoch: String(found[3 * i]),
        seq: count(found[3 * i + 1] ?? 0),
        isSpoilt: found[3 * i + 2] === 1,
      }))
    },
  },
  positionsLua,
)
