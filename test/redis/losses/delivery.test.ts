/** The calls about commands, whatever becomes of one of the commands that they send. */
import { DELIVERY_ACTS } from './acts-delivery.js'
import { describeLosses } from './campaign.js'

describeLosses(DELIVERY_ACTS)
