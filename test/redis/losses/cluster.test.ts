/** Lost replies over a Cluster, where the link that is lost is one of several. `LOSSES=all` tries every fault over both clients. */
import { DELIVERY_ACTS } from './acts-delivery.js'
import { MESSAGE_ACTS } from './acts-messages.js'
import { PRESENCE_ACTS } from './acts-presence.js'
import { describeLosses } from './campaign.js'

const ACTS = [...DELIVERY_ACTS, ...MESSAGE_ACTS, ...PRESENCE_ACTS]
const CLIENTS = ['node-redis cluster', 'ioredis cluster'] as const

if (process.env.LOSSES === 'all') describeLosses(ACTS, CLIENTS)
// Each call by one of the clients: together they are a tenth of all cases.
else
  CLIENTS.forEach((kind, i) => {
    describeLosses(
      ACTS.filter((_, n) => n % 2 === i),
      [kind],
      ['lost'],
    )
  })
