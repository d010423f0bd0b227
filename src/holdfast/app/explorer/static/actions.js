// What can be done about a dependency, where the server takes it.

/** Buttons for a dependency; null where it is only read. */
export function actions(page, dependency) {
  return null;
}
