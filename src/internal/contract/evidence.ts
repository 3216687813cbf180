/** The parts of a command's record, each there with `null` fields where it is not known. Imports nothing. */
import type { DeliveryStatusAnswer } from './delivery.js'

type Part = 'admission' | 'attempts' | 'acknowledgement' | 'recovery'
type Parts = { [Name in Part]: NonNullable<DeliveryStatusAnswer[Name]> }

const UNKNOWN: Parts = {
  admission: { state: null, at: null, scope_id: null, deadline_at: null },
  attempts: {
    count: null,
    confirmed: null,
    handed_over_at: null,
    last_at: null,
    last_node_id: null,
    last_outcome: null,
    items: [],
    omitted: null,
  },
  acknowledgement: { state: null, at: null, instance_id: null },
  recovery: { count: null, last_at: null, reason: null },
}

/** Returns the parts of `command`, those that are not known with `null` fields. */
export const partsOf = (command: Pick<DeliveryStatusAnswer, Part>): Parts => ({
  admission: command.admission ?? UNKNOWN.admission,
  attempts: command.attempts ?? UNKNOWN.attempts,
  acknowledgement: command.acknowledgement ?? UNKNOWN.acknowledgement,
  recovery: command.recovery ?? UNKNOWN.recovery,
})
