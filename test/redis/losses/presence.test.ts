/** The calls about who is there, whatever becomes of one of the commands that they send. */
import { PRESENCE_ACTS } from './acts-presence.js'
import { describeLosses } from './campaign.js'

describeLosses(PRESENCE_ACTS)
