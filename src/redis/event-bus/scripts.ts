/** The scripts of the event bus: a topic counts and publishes in one step, and returns its position. */
import { count, listOf } from '../store/reply.js'
import { defineScript } from '../store/script.js'
import positionsLua from './positions.lua'
import publishLua from './publish.lua'

/** Reply to a publication of an event that the topic has had. */
const REPEATED = 2

/**
 * Publishes an event. `known_epoch` and `known_seq`: the position that the publisher knows; `event_id`: detects events
 * that the topic has had, '' for none; `published_at`: the time in the event; `name`: the name of this publication.
 * Returns the position of the event, or that of the topic where the publication had arrived before.
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

/** Returns the position of each topic. `known`: topic, epoch and seq known to the node, for each of them. */
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
