/** The face of `relayscope/publisher`. */

export type { NotPublishedReason, SiteMessageAnswer } from '../internal/contract/ingest.js'
export type { Json } from '../internal/contract/json.js'
export type { Site, SiteInput } from '../internal/contract/sites.js'
export type { ClientHeaders, FieldError, HeaderFields } from '../internal/relay-client/wire.js'
export {
  type Application,
  type ApplicationOptions,
  type ApplicationSite,
  connectApplication,
} from './application.js'
export type { ApplicationActions } from './application-link.js'
export type { PublisherRuntime } from './publisher.js'
export {
  type CooperativeSitePublisher,
  type CooperativeSitePublisherOptions,
  createCooperativeSitePublisher,
  createRemoteSiteRegistry,
  type PublishOptions,
  RelayError,
  type RemoteSiteRegistry,
  type RemoteSiteRegistryOptions,
} from './publisher.js'
