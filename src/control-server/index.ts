/** The face of `relayscope/control-server`. */
export {
  type ControlServerTimeouts,
  type CooperativeSiteControlServer,
  type CooperativeSiteControlServerOptions,
  startCooperativeSiteControlServer,
} from './server.js'
