/** What the facilities of a node over Redis publish on `node:diagnostics_channel`. */
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { channelsBattery } from '../contract/channels.js'
import { describeStores } from './matrix.js'

describeStores('the channels of facilities over Redis', (kind, place) => {
  channelsBattery(kind, () => createRedisFacilities(place()))
})
