/** The face of `relayscope/publisher`. */
export type { Json } from '../contract/json.js'
export type { NotPublishedReason, SiteMessageAnswer } from '../contract/site-messages.js'
export type { Site, SiteInput } from '../contract/sites.js'
export type { FieldError } from '../relay-client/field-errors.js'
export type { HeaderFields } from '../relay-client/headers.js'
export {
  type CooperativeSitePublisher,
  type CooperativeSitePublisherOptions,
  createCooperativeSitePublisher,
  type PublishOptions,
} from './publisher.js'
export { RelayError } from './relay-error.js'
export { createRemoteSiteRegistry, type RemoteSiteRegistry, type RemoteSiteRegistryOptions } from './remote-sites.js'
export type { PublisherRuntime } from './runtime.js'
