/** What a rule needs from a store: an engine that runs one step of a record atomically. */

/** The result of a step: the record to store if it changes (`null` deletes it), and what the caller receives. */
export interface Change<R, A> {
  readonly record?: R | null
  /** Whether the record is alive for another interval. */
  readonly renews?: boolean
  readonly answer: A
}

/** One step of a record, as of now. It is pure: a store may run it again. */
export type Step<R, A> = (known: R | undefined, at: string) => Change<R, A>

export interface Owner {
  readonly user_id: string
  readonly client_id: string
}

/** The records of one family in some store. */
export interface Records<R> {
  /**
   * Runs `step` on the record of `id` and stores its result, as one atomic step.
   *
   * @param owner The owner of a record that may be new.
   * @throws Refusal `capacity_exceeded`, and what `step` throws.
   */
  change<A>(id: string, step: Step<R, A>, owner?: Pick<Owner, 'user_id'>): Promise<A>
}
