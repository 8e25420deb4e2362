#include "cmd/cmd.h"

int main(int argc, char **argv)
{
	return np_main(argc, argv);
}
