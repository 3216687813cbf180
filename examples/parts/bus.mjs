/** The event bus of one process alone. */

// #region part
import { siteStream } from 'relayscope'
import { createCooperativeSiteEventBus } from 'relayscope/cooperative-site'

const bus = createCooperativeSiteEventBus()
const topic = siteStream('grace', 'notes') // users/grace/sites/notes/events
const events = bus.subscribe(topic)

const published_at = new Date().toISOString()
await bus.publish(topic, { event_id: 'e-1', name: 'note_changed', site_id: 'notes', published_at, data: { id: 7 } })

const { value } = await events.next()
if (value.type === 'event') console.log(value.event.seq, value.event.name, value.event.data) // 1 note_changed { id: 7 }
if (value.type === 'gap') console.log('events are missing: fetch the resource again')
await bus.close()
// #endregion
