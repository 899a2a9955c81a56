/*
 * Errors in words, for messages to people.
 */
#ifndef LIB_ERROR_TEXT_H
#define LIB_ERROR_TEXT_H

/* error: a negative (or positive) errno. => a short phrase, never NULL */
const char *error_text(int error);

#endif
