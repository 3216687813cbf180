/** The calls about messages, events, calls and keys, whatever becomes of one of the commands that they send. */
import { MESSAGE_ACTS } from './acts-messages.js'
import { describeLosses } from './campaign.js'

describeLosses(MESSAGE_ACTS)
