/** `relayscope/bullmq`: what queues of BullMQ hold, for the router's routes of delivery. */
export type { BullmqIdentity, BullmqJob, Identify } from './identity.js'
export { type BullmqOptions, createBullmqInspectors } from './inspectors.js'
export type { BullmqJobState, BullmqQueue, BullmqQueueJob } from './queue.js'
